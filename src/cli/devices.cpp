// contraflow devices: the device files of the project, with what the shell leaves of each chip.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/command_line.h"
#include "config/project_files.h"

namespace contraflow::cli {

namespace {

using Row = std::vector<std::string>;

std::string of_chip(std::int64_t available, std::int64_t chip) {
    return fmt::format("{}/{}", available, chip);
}

Row row_of(const std::string& file) {
    const DeviceConfig device = load_device(file);
    const DramConfig memory = load_memory(device.memory_file);
    return {file,
            of_chip(device.available_luts, device.luts),
            of_chip(device.available_ffs, device.ffs),
            of_chip(device.available_dsps, device.dsps),
            of_chip(device.available_bram36, device.bram36),
            of_chip(device.available_urams, device.urams),
            device.name,
            memory.name};
}

void print(const std::vector<Row>& rows) {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    for (const Row& row : rows) {
        std::string text;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool last = i + 1 == row.size();
            text += last ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
        }
        std::cout << text << '\n';
    }
}

}  // namespace

int devices_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "devices";
    syntax.summary =
        "Lists the device files of the project: what the shell leaves / what the whole chip has, and the DRAM.";
    if (parse_command(args, syntax)) {
        std::vector<Row> rows{{"FILE", "LUT", "FF", "DSP", "BRAM36", "URAM", "DEVICE", "DRAM (ONE CHANNEL)"}};
        for (const std::string& file : config::list_config_files("devices")) {
            rows.push_back(row_of(file));
        }
        print(rows);
    }
    return 0;
}

}  // namespace contraflow::cli
