// The user's mistakes: thrown before anything is simulated; the program prints the lines and exits with status 2.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace contraflow {

class ConfigError : public std::runtime_error {
public:
    explicit ConfigError(const std::string& line) : std::runtime_error(line), lines_{line} {}
    // One line per problem, all of them at once. REQUIRES: lines is not empty.
    explicit ConfigError(std::vector<std::string> lines)
        : std::runtime_error(lines.front()), lines_(std::move(lines)) {}

    [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

private:
    std::vector<std::string> lines_;
};

// A design that is right in itself but needs more memory than the device has.
class DoesNotFit : public ConfigError {
public:
    using ConfigError::ConfigError;
};

}  // namespace contraflow
