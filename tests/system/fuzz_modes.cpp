// Random designs run clocked and leap: `fuzz_modes COUNT [FIRST_SEED]`, or `fuzz_modes DESIGN.ini` to run one that an
// earlier call printed. Prints each design in which the two differ, shrunk, as an INI file; exit status 1 if there is
// one.
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <systemc>

#include "random_design.h"

namespace {

using namespace contraflow::test;

// The lines of an INI file as ini_of writes them.
Overrides read_design(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error(path + " does not open");
    }
    Overrides design;
    std::string section;
    for (std::string line; std::getline(file, line);) {
        const std::size_t equals = line.find(" = ");
        if (line.size() > 2 && line.front() == '[') {
            section = line.substr(1, line.find(']') - 1);
        } else if (equals != std::string::npos) {
            design.emplace_back(section + "." + line.substr(0, equals), line.substr(equals + 3));
        }
    }
    return design;
}

int run_design(const std::string& path) {
    const std::string found = difference_of_modes(read_design(path));
    std::cout << (found.empty() ? "no difference\n" : found);
    return found.empty() ? 0 : 1;
}

int run_random(std::uint64_t count, std::uint64_t first_seed) {
    int failures = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const Overrides design = random_design(first_seed + i);
        if (!difference_of_modes(design).empty()) {
            ++failures;
            const Overrides shrunk = shrink(design, difference_of_modes);
            std::cout << "seed " << first_seed + i << ": " << difference_of_modes(shrunk) << "\nconfigs/tiny.ini with\n"
                      << ini_of(shrunk) << std::endl;
        }
        if ((i + 1) % 100 == 0) {
            std::cout << i + 1 << " designs, " << failures << " with a difference" << std::endl;
        }
    }
    std::cout << count << " designs, " << failures << " with a difference\n";
    return failures == 0 ? 0 : 1;
}

}  // namespace

int sc_main(int argc, char* argv[]) {
    try {
        const std::string first = argc > 1 ? argv[1] : "";
        if (first.empty() || argc > 3) {
            std::cerr << "usage: fuzz_modes COUNT [FIRST_SEED] | fuzz_modes DESIGN.ini\n";
            return 2;
        }
        if (first.find_first_not_of("0123456789") != std::string::npos) {
            return run_design(first);
        }
        return run_random(std::stoull(first), argc > 2 ? std::stoull(argv[2]) : 1);
    } catch (const std::exception& error) {
        std::cerr << "fuzz_modes: " << error.what() << '\n';
        return 2;
    }
}

int main(int argc, char* argv[]) {
    setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
