// Vector kernels run alone take exactly the cycles of the closed form in docs/timing.md, "Vector unit".
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "module/one_kernel.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::int64_t log2_of(std::int64_t power) {
    std::int64_t result = 0;
    while ((std::int64_t{1} << result) < power) {
        ++result;
    }
    return result;
}

// One pass of the closed form: what an element costs, written down from step.h by hand.
struct Pass {
    int adds = 0, multiplies = 0, specials = 0, special_latency = 0;
    bool reads = true, writes = true, row_sum = false, column_sum = false, single_row = false;
    int scalar_latency = 0;
    bool maximum = false;  // compares instead of adds
};

std::int64_t accumulators(std::int64_t n) {
    std::int64_t power = 1;
    while (power < n && power < 128) {
        power *= 2;
    }
    return power;
}

std::int64_t closed_form(const Config& config, std::int64_t rows, std::int64_t cols, const std::vector<Pass>& passes) {
    const std::int64_t lanes = config.vector.lanes;
    const std::int64_t add = config.engine.add_latency_cycles;
    const std::int64_t beats = ceil_div(cols, lanes);
    const std::int64_t rows_per_burst = std::max<std::int64_t>(1, config.vector.burst_beats / beats);
    std::int64_t begin = 3;
    std::int64_t results = 0;
    for (const Pass& pass : passes) {
        const std::int64_t pass_rows = pass.single_row ? 1 : rows;
        std::int64_t row_cycles = 0;
        for (std::int64_t beat = 0; beat < beats; ++beat) {
            const std::int64_t elements = std::min(lanes, cols - beat * lanes);
            std::int64_t cycles = std::max<std::int64_t>({1, pass.adds, pass.multiplies});
            cycles = std::max(cycles, pass.specials * ceil_div(elements, config.vector.special_lanes));
            const std::int64_t sums = accumulators(cols);
            const std::int64_t one = pass.maximum ? config.vector.compare_latency_cycles : add;
            if (pass.row_sum && cols > sums) {
                cycles = std::max(cycles, sums >= lanes ? ceil_div(one, sums / lanes) : one * ceil_div(lanes, sums));
            }
            if (pass.column_sum) {
                cycles = std::max(cycles, ceil_div(add, beats));
            }
            row_cycles += cycles;
        }
        const std::int64_t operation = pass.maximum ? config.vector.compare_latency_cycles : add;
        if (pass.row_sum) {
            row_cycles = std::max(row_cycles, ceil_div(accumulators(cols), lanes));
        }
        std::int64_t end = begin;
        for (std::int64_t row = 0; row < pass_rows; row += rows_per_burst) {
            const std::int64_t burst = row_cycles * std::min(rows_per_burst, pass_rows - row);
            end = begin + burst;
            begin += std::max<std::int64_t>(burst, 2);
        }
        std::int64_t latency = (pass.reads ? config.memory.bram_read_latency_cycles : 0) + pass.adds * operation +
                               pass.multiplies * config.engine.multiply_latency_cycles + pass.special_latency +
                               pass.scalar_latency + (pass.writes ? 1 : 0);
        if (pass.row_sum) {
            latency += log2_of(accumulators(cols)) * operation + ceil_div(accumulators(cols), lanes) - 1;
        }
        results = end - 1 + latency;
        begin = std::max(results + 1, end + 1);
    }
    return results + 1;
}

Config vector_machine(int lanes) {
    Config config = small_machine();
    config.vector.lanes = lanes;
    config.vector.special_lanes = std::max(1, lanes / 4);
    return config;
}

}  // namespace

TEST_CASE("an update takes the closed form for any size and lane count") {
    for (const int lanes : {1, 5, 7, 13, 32}) {
        for (const auto& [rows, cols] : std::vector<std::pair<int, int>>{{1, 1}, {3, 17}, {40, 33}}) {
            const Config config = vector_machine(lanes);
            CAPTURE(lanes, rows, cols);
            const KernelResult result = run_alone(config, vector_step(VectorOp::SgdUpdate, rows, cols, 0.1F));
            CHECK(result.bank == 0);
            CHECK(static_cast<std::int64_t>(result.cycles) ==
                  closed_form(config, rows, cols, {{1, 1, 0, 0, true, true}}));
        }
    }
}

TEST_CASE("special lanes pace exp and erf") {
    const Config config = vector_machine(8);
    const KernelResult gelu = run_alone(config, vector_step(VectorOp::GeluForward, 4, 19, 0));
    Pass pass{1, 3, 1, config.vector.erf_latency_cycles};
    CHECK(static_cast<std::int64_t>(gelu.cycles) == closed_form(config, 4, 19, {pass}));
    const KernelResult backward = run_alone(config, vector_step(VectorOp::GeluBackward, 4, 19, 0));
    pass = {2, 7, 2, config.vector.erf_latency_cycles + config.vector.exp_latency_cycles};
    CHECK(static_cast<std::int64_t>(backward.cycles) == closed_form(config, 4, 19, {pass}));
}

TEST_CASE("layer norm takes three passes, each draining its reduction") {
    for (const int lanes : {4, 32, 200}) {
        for (const std::int64_t cols : {1, 24, 130, 768}) {
            Config config = vector_machine(lanes);
            config.memory.banks = 256;
            const int add = config.engine.add_latency_cycles;
            const int multiply = config.engine.multiply_latency_cycles;
            std::vector<Pass> passes(3);
            passes[0] = {1, 0, 0, 0, true, false, true};
            passes[0].scalar_latency = multiply;
            passes[1] = {2, 1, 0, 0, true, false, true};
            passes[1].scalar_latency =
                multiply + add + config.vector.sqrt_latency_cycles + config.vector.divide_latency_cycles;
            passes[2] = {2, 2, 0, 0, true, true};
            CAPTURE(lanes, cols);
            const KernelResult result = run_alone(config, vector_step(VectorOp::LayerNormForward, 5, cols, 1e-12F));
            CHECK(result.bank == 0);
            CHECK(static_cast<std::int64_t>(result.cycles) == closed_form(config, 5, cols, passes));
        }
    }
}

TEST_CASE("softmax takes three passes") {
    Config config = vector_machine(8);
    std::vector<Pass> passes(3);
    passes[0] = {1, 1, 0, 0, true, false, true};
    passes[0].maximum = true;
    passes[1] = {2, 1, 1, config.vector.exp_latency_cycles, true, true, true};
    passes[1].scalar_latency = config.vector.divide_latency_cycles;
    passes[2] = {0, 1, 0, 0, true, true};
    config.memory.lutram_read_latency_cycles = 1;
    const KernelResult result = run_alone(config, vector_step(VectorOp::SoftmaxForward, 6, 20, 1));
    CHECK(static_cast<std::int64_t>(result.cycles) == closed_form(config, 6, 20, passes));
}

TEST_CASE("column sums of few columns wait for the adder") {
    const Config config = vector_machine(8);
    std::vector<Pass> passes(2);
    passes[0] = {1, 0, 0, 0, true, false, false, true};
    passes[1] = {0, 0, 0, 0, false, true, false, false, true};
    for (const std::int64_t cols : {3, 16, 40}) {
        const KernelResult result = run_alone(config, vector_step(VectorOp::ColumnSum, 9, cols, 0));
        CAPTURE(cols);
        CHECK(static_cast<std::int64_t>(result.cycles) == closed_form(config, 9, cols, passes));
        CHECK((result.dependency > 0) == (cols <= 16));
    }
}

TEST_CASE("more rows than row registers run in groups") {
    Config config = vector_machine(8);
    const KernelResult whole = run_alone(config, vector_step(VectorOp::SoftmaxForward, 12, 8, 1));
    config.vector.row_registers = 6;
    const KernelResult halves = run_alone(config, vector_step(VectorOp::SoftmaxForward, 12, 8, 1));
    CHECK(halves.busy == whole.busy);
    CHECK(halves.pipeline > whole.pipeline);
}

TEST_CASE("vector kernels count the same under leap") {
    for (const VectorOp op : {VectorOp::LayerNormForward, VectorOp::SoftmaxForward, VectorOp::ColumnSum, VectorOp::Fill,
                              VectorOp::GeluBackward}) {
        Config config = vector_machine(8);
        config.memory.banks = 3;
        const Step step = vector_step(op, 9, 21, 1);
        const KernelResult clocked = run_alone(config, step, RunMode::Clocked);
        const KernelResult leap = run_alone(config, step, RunMode::Leap);
        CHECK(clocked.cycles == leap.cycles);
        CHECK(clocked.busy == leap.busy);
        CHECK(clocked.bank == leap.bank);
        CHECK(clocked.port == leap.port);
        CHECK(clocked.pipeline == leap.pipeline);
    }
}
