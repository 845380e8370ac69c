#include "cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>

#include "config/nearest.h"
#include "contraflow/error.h"

namespace contraflow::cli {

const char* const kVersion = CONTRAFLOW_VERSION;

namespace {

constexpr const char* kUsage = "Usage: contraflow COMMAND [options]\n";

void print_help() {
    std::cout << kUsage
              << "\nSimulates, cycle by cycle, an FPGA that trains a tensor-train-compressed transformer.\n\n";
    for (const Command& command : commands()) {
        std::cout << fmt::format("  {:<10}  {}\n", command.name, command.summary);
    }
    std::cout << fmt::format("  {:<10}  {}\n", "--version", "print the version");
    std::cout << fmt::format("  {:<10}  {}\n", "--help", "print this text");
    std::cout << "\n`contraflow COMMAND --help` explains a command.\n";
}

int run_command(const Arguments& args) {
    const std::string& name = args.front();
    std::vector<std::string> names{"--version", "--help"};
    for (const Command& command : commands()) {
        if (command.name == name) {
            return command.run({args.begin() + 1, args.end()});
        }
        names.push_back(command.name);
    }
    const std::string meant = config::nearest(name, names);
    throw ConfigError("unknown command " + name +
                      (meant.empty() ? "; `contraflow --help` lists them" : "; did you mean " + meant + "?"));
}

}  // namespace

int run_program(const Arguments& args) {
    try {
        if (args.empty()) {
            std::cerr << kUsage << "`contraflow --help` lists the commands.\n";
            return 2;
        }
        if (args.front() == "--help" || args.front() == "-h" || args.front() == "help") {
            print_help();
            return 0;
        }
        if (args.front() == "--version") {
            std::cout << "contraflow " << kVersion << '\n';
            return 0;
        }
        return run_command(args);
    } catch (const ConfigError& error) {
        for (const std::string& line : error.lines()) {
            std::cerr << "contraflow: " << line << '\n';
        }
        return 2;
    } catch (const std::bad_alloc&) {
        std::cerr << "contraflow: out of memory\n";
        return 1;
    } catch (const std::exception& error) {
        std::cerr << "contraflow: " << error.what() << '\n';
        return 1;
    }
}

void prepare_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(stream, F_GETFD) < 0) {
            // Opened for reading, so that writing to a closed stdout still fails and is told; gets the lowest number.
            const int opened = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
            (void)opened;
        }
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // a full quota is an error of the write, which cleans up behind itself
}

int finish_streams(int status) {
    std::cout.flush();
    if (std::cout) {
        return status;
    }
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    const bool reader_gone = poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
    if (reader_gone) {
        return status;
    }
    std::cerr << "contraflow: the standard output could not be written\n";
    return status != 0 ? status : 1;
}

}  // namespace contraflow::cli
