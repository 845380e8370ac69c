#include "sweep/point.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <systemc>

#include "contraflow/error.h"
#include "contraflow/training_run.h"
#include "report/report_json.h"
#include "report/run_report.h"
#include "sweep/configuration.h"

namespace contraflow::sweep {

namespace {

// Lines about the design name it without its folder, so that a row does not depend on where the sweep was started.
std::string reason_of(const ConfigError& error, const std::string& design_file) {
    std::string reason;
    for (const std::string& line : error.lines()) {
        const bool names_design = line.compare(0, design_file.size(), design_file) == 0;
        reason +=
            (reason.empty() ? "" : "; ") +
            (names_design ? std::filesystem::path(design_file).filename().string() + line.substr(design_file.size())
                          : line);
    }
    return reason;
}

// The report as the database keeps it.
std::string stored_report(RunReport report, bool full) {
    if (!full) {  // before they are made, which takes long
        report.kernels.clear();
        report.critical_path.clear();
        report.memory.tensors.clear();
        report.memory.rams.clear();
        report.ram_accesses.clear();
    }
    nlohmann::ordered_json json = report_json(report, ReportFields::Results);
    if (!full) {
        json.erase("kernels");
        json.erase("kernels_steps");
        json.erase("critical_path");
        json["memory"].erase("tensors");
        json["memory"].erase("rams");
        json.erase("ram_accesses");
    }
    nlohmann::ordered_json blocks = nlohmann::ordered_json::object();
    for (nlohmann::ordered_json& block : json["blocks"]) {
        const std::string name = block["name"];
        block.erase("name");
        blocks[name] = std::move(block);
    }
    json["blocks"] = std::move(blocks);
    return json.dump();
}

void keep_systemc_quiet() {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DO_NOTHING);
    sc_core::sc_report_handler::set_actions(sc_core::SC_ERROR, sc_core::SC_THROW);
}

void simulate(const PointContext& context, const Config& config, KnownContractions& known, PointResult& result) {
    keep_systemc_quiet();
    const PointOptions& options = context.options;
    TrainingRun run(config, {RunMode::Leap, options.values, options.allow_overflow, &known}, context.data);
    run.train(options.steps);
    RunReport report = run.report();
    result.startup_seconds = report.host.startup_seconds;
    result.seconds = report.host.seconds;
    result.peak_rss_bytes = report.host.peak_rss_bytes;
    result.report = stored_report(std::move(report), options.full_reports);
    result.status = Status::Done;
}

void set_configuration(const Config& config, PointResult& result) {
    result.config = configuration_text(config);
    result.config_hash = configuration_hash(result.config, config);
}

constexpr char kSeparator = '\0';

}  // namespace

std::string PointOptions::json() const {
    return nlohmann::json{{"steps", steps},
                          {"values", values ? "on" : "off"},
                          {"allow_overflow", allow_overflow},
                          {"full_reports", full_reports}}
        .dump();
}

PointResult run_point(const PointContext& context, const Claim& claim, KnownContractions& known) {
    PointResult result;
    result.keys = claim.keys;
    try {
        const LoadedConfig loaded = with_overrides(context.design, claim.assignments);
        set_configuration(loaded.config, result);
        try {
            simulate(context, loaded.config, known, result);
        } catch (const ConfigError& error) {
            throw located(error, loaded);
        }
    } catch (const ConfigError& error) {
        result.reason = reason_of(error, context.design.file);
    } catch (const std::bad_alloc&) {
        result.reason = "out of memory";
    } catch (const std::exception& error) {
        result.reason = error.what();
    }
    return result;
}

PointResult failed_point(const PointContext& context, const Claim& claim, const std::string& reason) {
    PointResult result;
    result.keys = claim.keys;
    result.reason = reason;
    try {
        set_configuration(with_overrides(context.design, claim.assignments).config, result);
    } catch (const ConfigError&) {
        // It crashed before it found that out.
    }
    return result;
}

std::string pack(const PointResult& result) {
    std::string bytes(1, result.status == Status::Done ? 'd' : 'f');
    bytes += fmt::format("{} {} {}", result.startup_seconds, result.seconds, result.peak_rss_bytes);
    for (const std::string& field : {result.keys, result.reason, result.config, result.config_hash, result.report}) {
        bytes += kSeparator + field;
    }
    return bytes;
}

PointResult unpack(const std::string& bytes) {
    PointResult result;
    result.status = bytes.front() == 'd' ? Status::Done : Status::Failed;
    char* next = nullptr;
    result.startup_seconds = std::strtod(bytes.c_str() + 1, &next);
    result.seconds = std::strtod(next, &next);
    result.peak_rss_bytes = std::strtoll(next, &next, 10);
    std::size_t begin = bytes.find(kSeparator) + 1;
    for (std::string* field : {&result.keys, &result.reason, &result.config, &result.config_hash, &result.report}) {
        const std::size_t end = bytes.find(kSeparator, begin);
        *field = bytes.substr(begin, end - begin);
        begin = end + 1;
    }
    return result;
}

}  // namespace contraflow::sweep
