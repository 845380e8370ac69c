// Where tensors live: RAM blocks as the vendor counts them, layouts, conservation, and what tensors in DRAM cost.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/command.h"
#include "common/integer_math.h"
#include "contraflow/error.h"
#include "contraflow/op_steps.h"
#include "contraflow/step.h"
#include "plan/blocks.h"
#include "plan/known_contractions.h"
#include "plan/layout.h"
#include "plan/planner.h"
#include "report/memory_report.h"
#include "support/machine_harness.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

Config paper_config(int encoders, const Overrides& overrides = {}) {
    return config_of(std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/u50-" + std::to_string(encoders) + "enc.ini",
                     overrides);
}

RamGeometry bram(std::int64_t rows, int lanes, int banks, int ports) {
    RamGeometry ram;
    ram.kind = RamKind::Bram;
    ram.rows = rows;
    ram.lanes = lanes;
    ram.banks = banks;
    ram.ports = ports;
    return ram;
}

RamGeometry uram(std::int64_t rows, int lanes, int banks) {
    RamGeometry ram = bram(rows, lanes, banks, 2);
    ram.kind = RamKind::Uram;
    return ram;
}

// The paper's linear: 768 -> 768, modes 12 8 8 / 8 8 12, rank 12, 32 positions.
Step paper_linear(Flow flow) {
    return build_tt_linear_step(paper_config(2).tt_model(), 32, flow);
}

struct Range {
    std::int64_t begin = 0, end = 0;
    std::int32_t first = 0, last = 0;
    std::string name;
};

// No two tensors that are alive at the same time share a word, and every tensor lies inside its memory.
void check_conservation(const PlannedStep& planned) {
    std::map<std::uint32_t, std::vector<Range>> by_ram;
    for (std::size_t i = 0; i < planned.step.tensors.size(); ++i) {
        const Placement& placement = planned.plan.placements[i];
        const Tensor& tensor = planned.step.tensors[i];
        if (placement.in_dram()) {
            continue;
        }
        INFO(tensor.name);
        const RamGeometry& ram = planned.program.rams.at(placement.ram);
        CHECK(placement.base >= 0);
        CHECK(placement.base + placement.words <= ram.words());
        CHECK(placement.words >= tensor.words());
        by_ram[placement.ram].push_back({placement.base, placement.base + placement.words, placement.first_kernel,
                                         placement.last_kernel, tensor.name});
    }
    for (const auto& [ram, ranges] : by_ram) {
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            for (std::size_t j = i + 1; j < ranges.size(); ++j) {
                const Range& a = ranges[i];
                const Range& b = ranges[j];
                const bool together = a.first <= b.last && b.first <= a.last;
                const bool overlap = a.begin < b.end && b.begin < a.end;
                if (together && overlap) {
                    FAIL_CHECK(a.name << " and " << b.name << " share words of memory " << ram);
                }
            }
        }
    }
}

// Distinct words, and none outside: what a layout must do whatever its form.
void check_bijection(const Tensor& tensor, const std::vector<LayoutLevel>& levels) {
    Placement placement;
    placement.levels = levels;
    std::set<std::int64_t> seen;
    for (std::int64_t element = 0; element < tensor.words(); ++element) {
        const std::int64_t address = placement.address(element);
        CHECK(address < occupied_words(levels));
        seen.insert(address);
    }
    CHECK(static_cast<std::int64_t>(seen.size()) == tensor.words());
}

Tensor tensor_of(std::vector<std::int64_t> shape) {
    Tensor tensor;
    tensor.name = "x";
    tensor.shape = std::move(shape);
    return tensor;
}

std::vector<std::int64_t> splits_of(const Tensor& tensor) {
    std::vector<std::int64_t> splits{1};
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
        splits.push_back(splits.back() * *extent);
    }
    std::sort(splits.begin(), splits.end());
    splits.erase(std::unique(splits.begin(), splits.end()), splits.end());
    return splits;
}

std::int64_t dma_words(const Step& step, bool to_chip) {
    std::int64_t words = 0;
    for (const Kernel& kernel : step.kernels) {
        const auto* transfer = std::get_if<DmaTransfer>(&kernel.work);
        words +=
            transfer != nullptr && transfer->home != kNoTensor && transfer->to_chip == to_chip ? transfer->words : 0;
    }
    return words;
}

// A program as text: what its kernels take, and what each contraction addresses under which mappings.
std::string text_of(const Program& program) {
    std::ostringstream text;
    const auto list = [&text](const auto& numbers) {
        for (const auto number : numbers) {
            text << ' ' << number;
        }
        text << ';';
    };
    for (const KernelCommand& kernel : program.kernels) {
        text << '\n' << kernel.name << ' ' << kernel.priority;
        list(kernel.cycles);
        list(kernel.gang_for);
    }
    for (const ContractionCommand& command : program.contractions) {
        text << '\n' << command.costs_like;
        for (const TileMapping& mapping : command.mappings) {
            list(std::vector<int>{mapping.transposed ? 1 : 0, mapping.pe_rows, mapping.pe_cols, mapping.gang_rows,
                                  mapping.gang_cols, mapping.row_interleave, mapping.col_interleave,
                                  mapping.batch_interleave});
        }
        for (const AccessTable* table : {&command.a, &command.b, &command.out, &command.bias, &command.residual}) {
            text << ' ' << index_of(table->ram) << ' ' << table->base << ' ' << table->depth_step << ' '
                 << table->token.modulus;
            list(table->batch);
            list(table->row);
            list(table->col);
            list(table->depth);
        }
    }
    return text.str();
}

std::string error_of(const Config& config) {
    try {
        (void)plan_step(build_training_step(config), config);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

// The worked examples of one TT core (12 x 8 x 12) and its neighbours; one access per cycle: simple dual port shapes.
TEST_CASE("RAM blocks are counted as the vendor's tools do") {
    CHECK(blocks_of(bram(1152, 1, 1, 1)).bram18 == 3);
    CHECK(blocks_of(bram(96, 1, 12, 1)).bram18 == 12);    // partitioned 12 ways
    CHECK(blocks_of(bram(96, 12, 1, 1)).bram18 == 11);    // reshaped 12 words wide
    CHECK(blocks_of(bram(12, 1, 12, 1)).bram18 == 12);    // an edge core, partitioned
    CHECK(blocks_of(bram(480, 1, 12, 1)).bram18 == 12);   // five cores in one group
    CHECK(blocks_of(bram(480, 12, 1, 1)).bram18 == 11);   // and reshaped
    CHECK(blocks_of(bram(768, 1, 12, 1)).bram18 == 24);   // merged U
    CHECK(blocks_of(bram(2048, 1, 12, 1)).bram18 == 48);  // an activation of 32 x 768
    CHECK(blocks_of(bram(12288, 2, 1, 1)).bram18 == 48);
    CHECK(blocks_of(bram(72000, 1, 1, 1)).bram18 == 141);
    CHECK(blocks_of(bram(24576, 1, 1, 1)).bram18 == 48);
    CHECK(blocks_of(uram(1152, 1, 1)).urams == 1);
    CHECK(blocks_of(uram(96, 12, 1)).urams == 6);
    CHECK(blocks_of(uram(12288, 2, 1)).urams == 3);
    CHECK(blocks_of(uram(72000, 1, 1)).urams == 18);
    CHECK(blocks_of(uram(36000, 2, 1)).urams == 9);
    CHECK(blocks_of(uram(24576, 1, 1)).urams == 6);
    // Samples of synthesis reports: depth x width.
    CHECK(blocks_of(bram(256, 1, 1, 1)).bram18 == 1);
    CHECK(blocks_of(bram(768, 1, 1, 1)).bram18 == 2);
    CHECK(blocks_of(bram(24, 4, 1, 1)).bram18 == 4);
    CHECK(blocks_of(bram(48, 9, 1, 1)).bram18 == 8);
    CHECK(blocks_of(bram(24576, 16, 1, 1)).bram18 == 684);
    // True dual port: no 512 x 36, so that a 32-bit word takes two halves.
    CHECK(blocks_of(bram(256, 1, 1, 2)).bram18 == 2);
    CHECK(blocks_of(bram(256, 1, 32, 2)).bram36() == 32);
}

TEST_CASE("a linear whose cores are each partitioned 12 ways fills 36 BRAM36 with 4.25 of them in bits") {
    const Step step = paper_linear(Flow::Btt);
    std::int64_t bits = 0;
    BlockCount blocks;
    for (const Tensor& tensor : step.tensors) {
        if (tensor.name.rfind("core.", 0) == 0) {
            bits += tensor.words() * 32;
            blocks += blocks_of(bram(ceil_div(tensor.words(), 12), 1, 12, 1));
        }
    }
    CHECK(static_cast<double>(bits) / 36864.0 == Approx(4.25));
    CHECK(blocks.bram36() == 36);
    // The planner, told to do just this: one memory per core.
    const Config config = paper_config(2, {{"memory.layout", "naive"},
                                           {"memory.banks", "12"},
                                           {"memory.ports", "1"},
                                           {"memory.lutram_max_words", "0"},
                                           {"memory.parameters", "bram"}});
    const PlannedStep planned = plan_step(step, config);
    BlockCount planned_blocks;
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        if (step.tensors[i].name.rfind("core.", 0) == 0) {
            planned_blocks += planned.plan.ram_blocks.at(planned.plan.placements[i].ram);
        }
    }
    CHECK(planned_blocks.bram36() == 36);
}

TEST_CASE("grouping divides the blocks of small cores") {
    const Config config = paper_config(2);
    Config alone = config;
    alone.memory.grouping = false;
    alone.memory.lutram_max_words = 0;
    PlanOptions options;
    options.on_chip = true;
    const Step step = build_training_step(config);
    const PlannedStep grouped = plan_step(step, config, options);
    const PlannedStep separate = plan_step(step, alone, options);
    CHECK(grouped.plan.overflows.empty());
    CHECK_FALSE(separate.plan.overflows.empty());
    CHECK(grouped.plan.blocks.bram36() * 3 < separate.plan.blocks.bram36());
}

TEST_CASE("a cyclic partition puts element i in bank i mod B, blocks put it in bank i / ceil(n / B)") {
    const Tensor tensor = tensor_of({5, 12});
    for (const int lanes : {1, 2, 3}) {
        for (const auto& [kind, dimension, banks] :
             std::vector<std::tuple<Partition::Kind, int, int>>{{Partition::Kind::Cyclic, 1, 4},
                                                                {Partition::Kind::Cyclic, 1, 5},
                                                                {Partition::Kind::Cyclic, 0, 2},
                                                                {Partition::Kind::Block, 1, 4},
                                                                {Partition::Kind::Block, 0, 3}}) {
            const auto levels = make_partitioned_levels(tensor, splits_of(tensor), {{dimension, kind, banks}}, lanes);
            check_bijection(tensor, levels);
            Placement placement;
            placement.levels = levels;
            const std::int64_t extent = tensor.shape[static_cast<std::size_t>(dimension)];
            for (std::int64_t element = 0; element < tensor.words(); ++element) {
                const std::int64_t index = dimension == 0 ? element / 12 : element % 12;
                const std::int64_t wanted =
                    kind == Partition::Kind::Cyclic ? index % banks : index / ceil_div(extent, banks);
                CHECK(placement.address(element) / lanes % banks == wanted);
            }
        }
    }
}

TEST_CASE("two partitioned dimensions multiply their banks") {
    const Tensor tensor = tensor_of({4, 6});
    const std::vector<Partition> partitions{{0, Partition::Kind::Cyclic, 2}, {1, Partition::Kind::Cyclic, 3}};
    CHECK(partition_banks(partitions) == 6);
    const auto levels = make_partitioned_levels(tensor, splits_of(tensor), partitions, 1);
    check_bijection(tensor, levels);
    Placement placement;
    placement.levels = levels;
    std::set<std::int64_t> banks;
    for (const std::int64_t element : {0, 1, 2, 6, 7, 8}) {  // a 2 x 3 tile is read in one cycle
        banks.insert(placement.address(element) % 6);
    }
    CHECK(banks.size() == 6);
}

TEST_CASE("reshape puts neighbours side by side in one row of a bank") {
    const Tensor tensor = tensor_of({3, 10});
    const auto levels = make_partitioned_levels(tensor, splits_of(tensor), {}, 4);
    check_bijection(tensor, levels);
    Placement placement;
    placement.levels = levels;
    CHECK(placement.address(0) / 4 == placement.address(3) / 4);
    CHECK(placement.address(3) / 4 != placement.address(4) / 4);
    CHECK(placement.address(10) % 4 == 0);  // a row of the tensor starts a row of the memory
}

TEST_CASE("a skewed layout serves rows and columns: element (i, j) is in bank (i s + j) mod B") {
    const std::vector<LayoutLevel> levels = make_levels({1, 32, 1024}, 8, 1, true);
    const std::int64_t stride = levels.front().stride;
    Placement placement;
    placement.levels = levels;
    for (std::int64_t i = 0; i < 32; ++i) {
        for (std::int64_t j = 0; j < 32; ++j) {
            CHECK(placement.address(i * 32 + j) % 8 == (i * stride + j) % 8);
        }
    }
    std::set<std::int64_t> column;
    for (std::int64_t i = 0; i < 8; ++i) {
        column.insert(placement.address(i * 32) % 8);
    }
    CHECK(column.size() == 8);
}

TEST_CASE("blocks of random memories are at most a hand count") {
    std::mt19937 random(7);
    for (int i = 0; i < 20; ++i) {
        const std::int64_t rows = 1 + random() % 5000;
        const int lanes = 1 + static_cast<int>(random() % 6);
        const int banks = 1 + static_cast<int>(random() % 40);
        INFO(rows << " rows of " << lanes << " words in " << banks << " banks");
        // By hand: every 32-bit word column of a bank in RAMB36s of 1K x 36, or URAMs of 4K x 72 that hold two.
        CHECK(blocks_of(bram(rows, lanes, banks, 2)).bram18 <= 2 * banks * lanes * ceil_div(rows, 1024));
        CHECK(blocks_of(bram(rows, lanes, banks, 1)).bram18 <= banks * lanes * ceil_div(rows, 512));
        CHECK(blocks_of(uram(rows, lanes, banks)).urams <= banks * ceil_div(lanes, 2) * ceil_div(rows, 4096));
        // And never less than the bits need.
        CHECK(blocks_of(bram(rows, lanes, banks, 1)).bram18 * 18432 >= rows * lanes * banks * 32);
    }
}

TEST_CASE("the tensor networks train on the U50 with everything on chip, the dense ones do not fit") {
    const std::vector<std::pair<int, double>> published{{2, 29.76}, {4, 42.53}, {6, 51.15}};
    for (const auto& [encoders, compression] : published) {
        for (const char* flow : {"btt", "tt", "mm"}) {
            INFO(encoders << " encoders, " << flow);
            const Config config = paper_config(encoders, {{"network.flow", flow}});
            const PlannedStep planned = plan_step(build_training_step(config), config);
            CHECK(planned.plan.overflows.empty());
            const bool dense = std::string(flow) == "mm";
            CHECK(planned.plan.on_chip_overflows.empty() == !dense);
            CHECK((planned.plan.dram_bytes > 0) == dense);
            check_conservation(planned);
            const MemoryReport report = make_memory_report(config, planned.step, planned.plan, planned.program, false);
            if (!dense) {
                CHECK(report.compression == Approx(compression).margin(0.005));
            }
            // Bytes by class are those of the tensors, and shares of blocks add up to the blocks.
            double bram36 = 0;
            double urams = 0;
            for (const ClassBytes& entry : report.classes) {
                bram36 += entry.blocks.bram36;
                urams += entry.blocks.urams;
            }
            CHECK(bram36 == Approx(static_cast<double>(planned.plan.blocks.bram18) / 2));
            CHECK(urams == Approx(static_cast<double>(planned.plan.blocks.urams)));
            std::int64_t parameters = 0;
            for (std::size_t i = 0; i < planned.plan.num_tensors; ++i) {
                const Tensor& tensor = planned.step.tensors[i];
                parameters += tensor.tensor_class == TensorClass::Parameter ? tensor.words() * 4 : 0;
            }
            CHECK(report.bytes_of(TensorClass::Parameter) == parameters);
            CHECK(report.parameters_bytes == parameters);
        }
    }
}

TEST_CASE("a plan is deterministic") {
    const Config config = paper_config(2);
    const Step step = build_training_step(config);
    const PlannedStep first = plan_step(step, config);
    const PlannedStep second = plan_step(step, config);
    REQUIRE(first.plan.placements.size() == second.plan.placements.size());
    for (std::size_t i = 0; i < first.plan.placements.size(); ++i) {
        CHECK(first.plan.placements[i].ram == second.plan.placements[i].ram);
        CHECK(first.plan.placements[i].base == second.plan.placements[i].base);
    }
}

TEST_CASE("a plan does not depend on what is known from other designs, and designs alike share all of it") {
    const std::string tiny = std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/tiny.ini";
    const auto plan = [&tiny](Overrides overrides, KnownContractions* known) {
        overrides.insert(overrides.begin(), {{"engine.count", "2"}, {"memory.banks", "2"}});
        const Config config = config_of(tiny, overrides);
        PlanOptions options;
        options.known = known;
        return plan_step(build_training_step(config), config, options);
    };
    KnownContractions known;
    // Each next to a design that differs in one respect only.
    for (const Overrides& overrides : std::vector<Overrides>{{},
                                                             {{"engine.rows", "3"}},
                                                             {},
                                                             {{"engine.cols", "4"}},
                                                             {{"engine.cols", "4"}, {"engine.interleave", "4"}},
                                                             {{"engine.partial_sums", "3"}},
                                                             {{"engine.multiply_latency_cycles", "9"}},
                                                             {{"engine.add_latency_cycles", "7"}},
                                                             {{"engine.broadcast_latency_cycles", "30"}},
                                                             {{"engine.count", "4"}},
                                                             {{"engine.count", "4"}, {"schedule.split", "off"}},
                                                             {{"engine.mapping", "*.fwd*:rows"}},
                                                             {{"engine.mapping", "*.fwd*:cols"}},
                                                             {{"engine.mapping", "*.fwd*:cols/1x1"}},
                                                             {{"engine.mapping", "*.fwd*:cols/1x1,*:rows"}},
                                                             {},
                                                             {{"memory.banks", "4"}},
                                                             {{"memory.layout", "naive"}},
                                                             {{"tt.rank", "5"}},
                                                             {{"network.flow", "tt"}},
                                                             {{"network.flow", "mm"}}}) {
        INFO(overrides.size() << " keys, last " << (overrides.empty() ? "" : overrides.back().first));
        CHECK(text_of(plan(overrides, &known).program) == text_of(plan(overrides, nullptr).program));
    }
    (void)plan({}, &known);
    const std::size_t shapes = known.num_shapes;
    (void)plan({{"clock.fabric_hz", "150000000"}}, &known);
    CHECK(known.num_shapes == shapes);
}

// m1 r1 m2 r2 + ... as golden/README.md counts them, here from the shape.
TEST_CASE("intermediates of one linear: what neither x, y, a core nor a gradient of one holds") {
    const auto intermediates = [](Flow flow) {
        const Step step = paper_linear(flow);
        std::set<std::string> others{"x", "y", "bias"};
        std::int64_t words = 0;
        std::set<TensorId> written;
        for (const Kernel& kernel : step.kernels) {
            if (kernel.phase != Phase::Forward) {
                continue;
            }
            const TensorUses uses = tensor_uses(step, kernel);
            written.insert(uses.writes.begin(), uses.writes.end());
        }
        for (const TensorId id : written) {
            words += others.count(step.tensor(id).name) == 0 ? step.tensor(id).words() : 0;
        }
        return words;
    };
    CHECK(intermediates(Flow::Btt) == 21'120);
    CHECK(intermediates(Flow::Tt) == 55'680);
    CHECK(intermediates(Flow::Mm) == 0);
}

TEST_CASE("rules place and lay out tensors by name, the later one winning") {
    const Config config = paper_config(2, {{"memory.tensors",
                                            "*.core.*:uram, encoder.0.attn.q.core.1:bram:cyclic.0=12:group=q,"
                                            "encoder.0.attn.q.core.2:bram:cyclic.0=12:group=q,embed.pos:reshape=4"}});
    const PlannedStep planned = plan_step(build_training_step(config), config);
    const auto placement = [&](const char* name) {
        return planned.plan.placements.at(index_of(planned.step.find(name)));
    };
    CHECK(planned.program.rams.at(placement("encoder.1.attn.q.core.1").ram).kind == RamKind::Uram);
    const Placement first = placement("encoder.0.attn.q.core.1");
    const Placement second = placement("encoder.0.attn.q.core.2");
    CHECK(first.ram == second.ram);
    CHECK(first.layout == "cyclic.0=12");
    const RamGeometry& ram = planned.program.rams.at(first.ram);
    CHECK(ram.kind == RamKind::Bram);
    CHECK(ram.banks == 12);
    CHECK(ram.lanes == 1);
    CHECK(planned.program.rams.at(placement("embed.pos").ram).lanes == 4);
    CHECK(placement("embed.pos").layout == "reshape=4");
    check_conservation(planned);
}

TEST_CASE("rules that cannot be kept are refused by name") {
    CHECK(error_of(paper_config(2, {{"memory.tensors", "encoder.9.*:bram"}})) ==
          "memory.tensors: encoder.9.* matches no tensor of this design; expected a pattern of their names, which "
          "`contraflow check --json` lists");
    CHECK(error_of(paper_config(2, {{"memory.tensors", "embed.pos:cyclic.2=4"}})) ==
          "memory.tensors: embed.pos (32 x 768): has no dimension 2; expected 0 to 1");
    CHECK(error_of(paper_config(2, {{"memory.tensors", "embed.pos:cyclic.0=33"}})) ==
          "memory.tensors: embed.pos (32 x 768): dimension 0 has 32 elements for 33 banks; expected at most 32");
    CHECK(error_of(paper_config(2, {{"memory.tensors", "embed.pos:bram:group=g,embed.token.core.0:uram:group=g"}}))
              .find("memory.tensors: group g holds") == 0);
    CHECK(error_of(
              paper_config(2, {{"network.flow", "mm"}, {"memory.parameters", "dram"}, {"memory.stream_words", "20"}}))
              .find("expected memory.stream_words of at least") != std::string::npos);
}

TEST_CASE("a streamed step does the same work: its tiles add up, and what a kernel reads and writes is moved once") {
    const Config config = paper_config(2, {{"network.flow", "mm"}});
    Config streamed = config;
    streamed.memory.parameters = RamPlace::Dram;
    streamed.memory.gradients = RamPlace::Dram;
    const Step step = build_training_step(config);
    const PlannedStep planned = plan_step(step, streamed);
    CHECK(planned.step.macs() == step.macs());
    check_conservation(planned);
    // By hand from the step as built: every kernel loads what it reads of a tensor in DRAM and stores what it writes,
    // but rows that tokens choose are only those rows.
    std::int64_t loaded = 0;
    std::int64_t stored = 0;
    const auto off_chip = [&](TensorId id) {
        const TensorClass tensor_class = step.tensor(id).tensor_class;
        return tensor_class == TensorClass::Parameter || tensor_class == TensorClass::Gradient;
    };
    for (const Kernel& kernel : step.kernels) {
        const TensorUses uses = tensor_uses(step, kernel);
        const auto words = [&](TensorId id) {
            const bool rows = kernel.name == "embed.token.fwd.gather" || kernel.name == "embed.token.bwd.scatter";
            return rows ? std::int64_t{32} * 768 : step.tensor(id).words();
        };
        for (const TensorId id : uses.reads) {
            loaded += off_chip(id) ? words(id) : 0;
        }
        for (const TensorId id : uses.read_modify_writes) {
            loaded += off_chip(id) ? words(id) : 0;
            stored += off_chip(id) ? words(id) : 0;
        }
        for (const TensorId id : uses.writes) {
            stored += off_chip(id) ? words(id) : 0;
        }
    }
    CHECK(dma_words(planned.step, true) == loaded);
    CHECK(dma_words(planned.step, false) == stored);
}

TEST_CASE("the next tile is loaded into another buffer than the one that is worked on") {
    Config config = paper_config(2, {{"network.flow", "mm"}});
    config.memory.parameters = RamPlace::Dram;
    const PlannedStep planned = plan_step(build_training_step(config), config);
    std::map<std::string, std::vector<std::uint32_t>> rams;  // of the tiles of each cut kernel, in order
    for (std::size_t k = 0; k < planned.step.kernels.size(); ++k) {
        const Kernel& kernel = planned.step.kernels[k];
        const auto* transfer = std::get_if<DmaTransfer>(&kernel.work);
        const std::size_t load = kernel.name.find(".load");
        if (transfer != nullptr && transfer->home != kNoTensor && load != std::string::npos) {
            rams[kernel.name.substr(0, load)].push_back(planned.plan.placements[index_of(transfer->tensor)].ram);
        }
    }
    const std::vector<std::uint32_t>& linear = rams.at("encoder.0.attn.q.fwd.Y");
    REQUIRE(linear.size() > 2);
    for (std::size_t i = 1; i < linear.size(); ++i) {
        CHECK(linear[i] != linear[i - 1]);
    }
}

TEST_CASE("a design that needs more DRAM than there is says so") {
    Config config = paper_config(2, {{"network.flow", "mm"}, {"memory.parameters", "dram"}});
    config.dram.channel_bytes = 1 << 20;
    const PlannedStep planned = plan_step(build_training_step(config), config);
    REQUIRE_FALSE(planned.plan.overflows.empty());
    CHECK(planned.plan.overflows.back().find("bytes of DRAM") != std::string::npos);
}
