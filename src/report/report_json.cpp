#include "report/report_json.h"

#include <cmath>

#include "config/effective.h"
#include "report/dram_report.h"

namespace contraflow {

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json to_json(const StallCycles& stalls) {
    Json json = Json::object();
    for (const auto& [cause, cycles] : stalls) {
        json[cause] = cycles;
    }
    return json;
}

Json to_json(const BlockUse& use) {
    return {{"used", use.used}, {"available", use.available}, {"chip", use.chip}};
}

Json kernels_json(const RunReport& report) {
    Json kernels = Json::array();
    for (const KernelReport& kernel : report.kernels) {
        kernels.push_back({{"step", kernel.step},
                           {"name", kernel.name},
                           {"class", to_string(kernel.kernel_class)},
                           {"phase", to_string(kernel.phase)},
                           {"unit", kernel.unit},
                           {"units", kernel.units},
                           {"start", kernel.start},
                           {"end", kernel.end},
                           {"cycles", kernel.end - kernel.start},
                           {"macs", kernel.macs},
                           {"pe_use", kernel.unit_kind == UnitKind::Engine ? number(kernel.pe_use) : Json(nullptr)},
                           {"busy", kernel.cycles.busy},
                           {"stalls", to_json(stalls_of(kernel.cycles))}});
    }
    return kernels;
}

Json classes_json(const RunReport& report) {
    Json classes = Json::object();
    for (const ClassTotals& totals : report.classes) {
        Json phases;
        for (const Phase phase : {Phase::Forward, Phase::Backward, Phase::Update}) {
            phases[to_string(phase)] = totals.phase_cycles[static_cast<std::size_t>(phase)];
        }
        classes[to_string(totals.kernel_class)] = {{"kernels", totals.kernels},
                                                   {"cycles", totals.cycles},
                                                   {"phases", std::move(phases)},
                                                   {"macs", totals.macs},
                                                   {"critical_path_cycles", totals.critical_cycles}};
    }
    return classes;
}

Json ram_accesses_json(const RunReport& report) {
    Json rams = Json::array();
    for (const RamAccesses& accesses : report.ram_accesses) {
        rams.push_back({{"ram", accesses.ram},
                        {"reads", accesses.reads},
                        {"writes", accesses.writes},
                        {"words_read", accesses.words_read},
                        {"words_written", accesses.words_written},
                        {"conflict_cycles", accesses.conflict_cycles}});
    }
    return rams;
}

Json blocks_json(const RunReport& report) {
    Json blocks = Json::array();
    for (const BlockAccount& block : report.blocks) {
        blocks.push_back({{"name", block.name},
                          {"busy", block.busy},
                          {"stalls", to_json(block.stalls)},
                          {"idle", block.idle},
                          {"cycles", block.cycles}});
    }
    return blocks;
}

Json resources_json(const RunReport& report) {
    const auto whole = [](double value) { return static_cast<std::int64_t>(std::ceil(value)); };
    const auto primitives = [](const auto& dsp, const auto& lut, const auto& ff, const auto& bram36, const auto& uram) {
        return Json{{"dsp", dsp}, {"lut", lut}, {"ff", ff}, {"bram36", bram36}, {"uram", uram}};
    };
    const Primitives sum = report.resources.total();
    const DeviceConfig& device = report.config.device;
    Json json = primitives(whole(sum.dsp), whole(sum.lut), whole(sum.ff), whole(sum.bram36), whole(sum.uram));
    json["available"] = primitives(device.available_dsps, device.available_luts, device.available_ffs,
                                   device.available_bram36, device.available_urams);
    json["chip"] = primitives(device.dsps, device.luts, device.ffs, device.bram36, device.urams);
    json["rows"] = Json::array();
    for (const ResourceRow& row : report.resources.rows) {
        Json entry = {{"part", row.part}, {"component", row.component}, {"count", number(row.count)}};
        entry.update(primitives(number(row.use.dsp), number(row.use.lut), number(row.use.ff), number(row.use.bram36),
                                number(row.use.uram)));
        json["rows"].push_back(std::move(entry));
    }
    return json;
}

Json energy_json(const EnergyEstimate& energy) {
    Json json = {{"total", number(energy.total())}};
    for (const char* group : kEnergyGroups) {
        json[group] = number(energy.of_group(group));
    }
    return json;
}

Json energy_rows_json(const RunReport& report) {
    Json rows = Json::array();
    for (const EnergyRow& row : report.energy.rows) {
        rows.push_back({{"group", row.group},
                        {"part", row.part},
                        {"constant", row.constant},
                        {"count", number(row.count)},
                        {"joules", number(row.joules)}});
    }
    return {{"per_step_j", number(report.joules_per_step)},
            {"per_epoch_j", number(report.joules_per_step * static_cast<double>(kEpochSentences))},
            {"epoch_sentences", kEpochSentences},
            {"rows", std::move(rows)}};
}

// A channel's reads and writes are bursts of the DRAM; those of the whole are transactions of the DMA.
Json ddr_json(const RunReport& report) {
    const DdrReport& ddr = report.ddr;
    const DramConfig& config = report.config.dram;
    Json json = dram_json(ddr.sum, config, ddr.memory_cycles, config.channels);
    json["reads"] = ddr.reads;
    json["writes"] = ddr.writes;
    json["read_bytes"] = ddr.read_bytes;
    json["write_bytes"] = ddr.write_bytes;
    json["memory_cycles"] = ddr.memory_cycles;
    json["channels"] = Json::array();
    for (const DramStats& channel : ddr.channels) {
        json["channels"].push_back(dram_json(channel, config, ddr.memory_cycles, 1));
    }
    return json;
}

}  // namespace

Json memory_json(const MemoryReport& memory) {
    Json json;
    json["parameters_bytes"] = memory.parameters_bytes;
    json["dense_parameters_bytes"] = memory.dense_parameters_bytes;
    json["compression"] = number(memory.compression);
    json["gradients_bytes"] = memory.bytes_of(TensorClass::Gradient);
    json["activations_bytes"] = memory.bytes_of(TensorClass::Activation);
    json["scratch_bytes"] = memory.bytes_of(TensorClass::Scratch);
    json["buffers_bytes"] = memory.bytes_of(TensorClass::Buffer);
    json["peak_on_chip_bytes"] = memory.peak_on_chip_bytes;
    json["peak_kernel"] = memory.peak_kernel;
    json["peak_scratch_bytes"] = memory.peak_scratch_bytes;
    json["simulated_peak_on_chip_bytes"] = memory.simulated_peak_on_chip_bytes;
    json["simulated_peak_scratch_bytes"] = memory.simulated_peak_scratch_bytes;
    json["bram36"] = to_json(memory.bram36);
    json["uram"] = to_json(memory.uram);
    json["lutram_luts"] = memory.lutram_luts.used;
    json["bits_used"] = memory.bits_used;
    json["bits_occupied"] = memory.bits_occupied;
    json["shares_space"] = memory.shares_space;
    json["allow_overflow"] = memory.allow_overflow;
    json["overflows"] = memory.overflows;
    json["on_chip_overflows"] = memory.on_chip_overflows;
    json["dram_bytes"] = memory.dram_bytes;
    for (const ClassBytes& entry : memory.classes) {
        json["classes"][to_string(entry.tensor_class)] = {
            {"tensors", entry.tensors},           {"lutram_bytes", entry.lutram_bytes},
            {"bram_bytes", entry.bram_bytes},     {"uram_bytes", entry.uram_bytes},
            {"dram_bytes", entry.dram_bytes},     {"bram36", number(entry.blocks.bram36)},
            {"uram", number(entry.blocks.urams)}, {"bits_occupied", number(entry.bits_occupied)}};
    }
    json["tensors"] = Json::array();
    for (const TensorReport& tensor : memory.tensors) {
        json["tensors"].push_back({{"name", tensor.name},
                                   {"class", to_string(tensor.tensor_class)},
                                   {"place", tensor.place},
                                   {"ram", tensor.ram},
                                   {"layout", tensor.layout},
                                   {"bytes", tensor.bytes},
                                   {"words_occupied", tensor.words_occupied},
                                   {"bram36", number(tensor.blocks.bram36)},
                                   {"uram", number(tensor.blocks.urams)},
                                   {"luts", number(tensor.blocks.luts)},
                                   {"bits_used", tensor.bytes * 8},
                                   {"bits_occupied", number(tensor.bits_occupied)},
                                   {"first_kernel", tensor.first_kernel},
                                   {"last_kernel", tensor.last_kernel}});
    }
    json["rams"] = Json::array();
    for (const RamReport& ram : memory.rams) {
        json["rams"].push_back({{"name", ram.geometry.name},
                                {"kind", to_string(ram.geometry.kind)},
                                {"banks", ram.geometry.banks},
                                {"lanes", ram.geometry.lanes},
                                {"rows", ram.geometry.rows},
                                {"ports", ram.geometry.ports},
                                {"luts", ram.blocks.luts},
                                {"bram18", ram.blocks.bram18},
                                {"urams", ram.blocks.urams},
                                {"bits_used", ram.bits_used},
                                {"bits_occupied", ram.bits_occupied}});
    }
    return json;
}

Json report_json(const RunReport& report, ReportFields fields) {
    Json json;
    if (fields == ReportFields::All) {
        json["schema"] = "contraflow-report/1";
        json["version"] = CONTRAFLOW_VERSION;
        json["config"] = Json(config_json(report.config));
    }
    json["mode"] = report.run_mode == RunMode::Leap ? "leap" : "clocked";
    json["values"] = report.values ? "on" : "off";
    json["steps"] = report.steps;
    json["clock_hz"] = report.config.fabric_hz;
    json["cycles"] = {{"total", report.cycles.total},
                      {"forward", report.cycles.forward},
                      {"backward", report.cycles.backward},
                      {"update", report.cycles.update}};
    json["step_cycles"] = report.step_cycles;
    json["latency_s"] = number(report.latency_s);
    json["host_link_s"] = number(report.host_link_s);
    if (report.values) {
        Json loss = Json::array();
        Json intent = Json::array();
        Json slot = Json::array();
        for (const StepOutcome& outcome : report.outcomes) {
            loss.push_back(number(static_cast<double>(outcome.loss)));
            intent.push_back(number(static_cast<double>(outcome.intent_loss)));
            slot.push_back(number(static_cast<double>(outcome.slot_loss)));
        }
        json["loss"] = std::move(loss);
        json["intent_loss"] = std::move(intent);
        json["slot_loss"] = std::move(slot);
    }
    json["macs"] = report.macs;
    json["classes"] = classes_json(report);
    json["lower_bound"] = {{"cycles", report.bound.cycles}, {"macs", report.bound.macs},
                           {"vector", report.bound.vector}, {"bytes", report.bound.bytes},
                           {"chain", report.bound.chain},   {"ratio", number(report.bound_ratio())}};
    json["utilisation"] = {{"pe", number(report.utilisation.pe)},
                           {"engine", number(report.utilisation.engine)},
                           {"vector", number(report.utilisation.vector)},
                           {"dma", number(report.utilisation.dma)},
                           {"dram_bus", number(report.utilisation.dram_bus)},
                           {"memory_ports", number(report.utilisation.memory_ports)}};
    json["idle_pes"] = {{"below", kLowPeUse},
                        {"kernels", report.idle_pes.kernels},
                        {"busy", report.idle_pes.busy_cycles},
                        {"worst", report.idle_pes.worst},
                        {"worst_use", number(report.idle_pes.worst_use)}};
    json["stalls"] = to_json(stalls_of(report.unit_cycles));
    json["blocks"] = blocks_json(report);
    json["resources"] = resources_json(report);
    json["ddr"] = ddr_json(report);
    json["energy_j"] = energy_json(report.energy);
    json["energy"] = energy_rows_json(report);
    json["data"] = {{"unknown_words", report.data.unknown_words},
                    {"unseen_slots", report.data.unseen_slots},
                    {"unseen_intents", report.data.unseen_intents},
                    {"cut_sentences", report.data.cut_sentences}};
    json["links"] = Json::object();
    for (const LinkCount& link : report.links) {
        json["links"][link.name] = {{"sent", link.sent}, {"received", link.received}};
    }
    if (fields == ReportFields::All) {
        json["host"] = {{"startup_seconds", number(report.host.startup_seconds)},
                        {"seconds", number(report.host.seconds)},
                        {"peak_rss_bytes", report.host.peak_rss_bytes}};
    }
    json["memory"] = memory_json(report.memory);
    json["ram_accesses"] = ram_accesses_json(report);
    json["critical_path"] = Json::array();
    for (const RunReport::CriticalKernel& kernel : report.critical_path) {
        json["critical_path"].push_back(kernel.name);
    }
    json["kernels_steps"] = report.kernels_steps;
    json["kernels"] = kernels_json(report);
    return json;
}

}  // namespace contraflow
