#include "module/one_kernel.h"

#include <array>
#include <stdexcept>

#include "process/child_process.h"
#include "top/machine.h"

namespace contraflow::test {

namespace {

TensorId add(Step& step, const std::string& name, std::vector<std::int64_t> shape,
             TensorClass tensor_class = TensorClass::Scratch) {
    step.tensors.push_back({name, std::move(shape), tensor_class, ElementType::F32});
    return TensorId{static_cast<std::uint32_t>(step.tensors.size() - 1)};
}

void add_sample(Step& step, std::int64_t seq_len) {
    step.seq_len = seq_len;
    step.sample = add(step, "sample", {step.sample_words()}, TensorClass::Buffer);
    step.tensors.back().element = ElementType::I32;
}

}  // namespace

Config small_machine() {
    Config config;
    config.engine.count = 1;
    config.engine.rows = 2;
    config.engine.cols = 2;
    config.engine.interleave = 1;
    config.memory.banks = 64;
    config.memory.scratch = RamPlace::Bram;
    config.device.name = "test";
    config.device.bram36 = config.device.available_bram36 = 100000;
    config.device.available_luts = 1000000;
    config.dram.rows = 8;
    config.dram.channel_bytes = 1 << 20;
    return config;
}

Step product_step(const ProductShape& shape) {
    Step step;
    add_sample(step, 1);
    const TensorId a = add(step, "a", {shape.batch, shape.rows, shape.depth});
    const TensorId b = add(step, "b", {shape.batch, shape.depth, shape.cols});
    const TensorId out = add(step, "out", {shape.batch, shape.rows, shape.cols});
    Contraction product;
    product.batch = shape.batch;
    product.rows = shape.rows;
    product.cols = shape.cols;
    product.depth = shape.depth;
    product.a.tensor = a;
    product.a.batch = {{shape.batch, shape.rows * shape.depth}};
    product.a.row = {{shape.rows, shape.depth}};
    product.a.depth = {{shape.depth, 1}};
    product.b.tensor = b;
    product.b.batch = {{shape.batch, shape.depth * shape.cols}};
    product.b.depth = {{shape.depth, shape.cols}};
    product.b.col = {{shape.cols, 1}};
    product.out.tensor = out;
    product.out.batch = {{shape.batch, shape.rows * shape.cols}};
    product.out.row = {{shape.rows, shape.cols}};
    product.out.col = {{shape.cols, 1}};
    if (shape.bias) {
        product.bias.tensor = add(step, "bias", {shape.cols});
        product.bias.col = {{shape.cols, 1}};
    }
    if (shape.sums_batches) {
        product.out.batch.clear();
    }
    if (shape.accumulates) {
        product.residual = product.out;
    }
    step.kernels.push_back({"product", Phase::Forward, KernelClass::Dense, product});
    return step;
}

Step transfer_step(std::int64_t words, std::int64_t offset, bool to_chip) {
    return rows_transfer_step(1, words, 0, offset, to_chip);
}

Step rows_transfer_step(std::int64_t rows, std::int64_t row_words, std::int64_t row_pitch, std::int64_t offset,
                        bool to_chip, const TokenDigit& token) {
    Step step;
    add_sample(step, rows);
    DmaTransfer transfer;
    transfer.tensor = add(step, "x", {rows * row_words});
    transfer.words = rows * row_words;
    transfer.dram_address = offset;
    transfer.to_chip = to_chip;
    transfer.row_words = rows > 1 || token.modulus != 0 ? row_words : 0;
    transfer.row_pitch = row_pitch;
    transfer.token = token;
    step.kernels.push_back({"transfer", Phase::Forward, KernelClass::Dma, transfer});
    return step;
}

Step token_product_step(const ProductShape& shape, std::int64_t vocab) {
    Step step = product_step(shape);
    auto& product = std::get<Contraction>(step.kernels.front().work);
    step.tensors[index_of(step.sample)].shape = {3 * shape.batch + 2};
    step.seq_len = shape.batch;
    step.tensors[index_of(product.a.tensor)].shape = {vocab, shape.rows, shape.depth};
    product.a.batch.clear();
    product.a.token = {1, vocab, shape.rows * shape.depth};
    return step;
}

Step vector_step(VectorOp op, std::int64_t rows, std::int64_t cols, float scalar) {
    Step step;
    add_sample(step, std::max(rows, cols));
    VectorSegment segment;
    segment.op = op;
    segment.rows = rows;
    segment.cols = cols;
    segment.scalar = scalar;
    const auto matrix = [&](const std::string& name) {
        return VectorOperand{add(step, name, {rows, cols}), 0, cols, {}};
    };
    const auto row = [&](const std::string& name) { return VectorOperand{add(step, name, {cols}), 0, 0, {}}; };
    const VectorOperand nothing;
    const VectorOperand real{step.sample, step.real_offset(), 0, {}};
    switch (op) {
        case VectorOp::LayerNormForward:
            segment.in = {matrix("x"), nothing, row("gamma"), row("beta")};
            segment.out = {nothing, matrix("xhat"), {add(step, "rstd", {rows}), 0, 1, {}}, matrix("y")};
            break;
        case VectorOp::SoftmaxForward:
            segment.in = {matrix("x"), real};
            segment.out = {matrix("y")};
            break;
        case VectorOp::ColumnSum:
            segment.in = {matrix("x")};
            segment.out = {row("y")};
            break;
        case VectorOp::Fill:
            segment.out = {matrix("y")};
            break;
        case VectorOp::GeluBackward:
        case VectorOp::TanhBackward:
        case VectorOp::SgdUpdate:
            segment.in = {matrix("x"), matrix("g")};
            segment.out = {op == VectorOp::SgdUpdate ? segment.in[0] : matrix("y")};
            break;
        default:
            segment.in = {matrix("x")};
            segment.out = {matrix("y")};
            break;
    }
    step.kernels.push_back({"vector", Phase::Forward, KernelClass::Vector, VectorKernel{{segment}}});
    return step;
}

KernelResult run_alone(const Config& config, const Step& step, RunMode run_mode) {
    const std::string bytes = run_in_child([&] {
        SimulationOptions options;
        options.run_mode = run_mode;
        options.keep_all = true;
        Simulation simulation(config, step, options);
        Sample sample;
        const auto positions = static_cast<std::size_t>(step.seq_len);
        sample.tokens.assign(positions, 0);
        sample.slot_labels.assign(positions, 0);
        sample.real.assign(positions, 1);
        simulation.set_sample(sample);
        simulation.run({sample});
        const KernelRecord& record = simulation.machine().sequencer->kernels().back();
        const UnitCycles& cycles = record.cycles;
        std::uint64_t macs = 0;
        for (const auto& engine : simulation.machine().engines) {
            macs += engine->stats().num_macs;
        }
        const std::array<std::uint64_t, 12> numbers{record.end - record.start,
                                                    cycles.busy,
                                                    cycles.dependency,
                                                    cycles.bank,
                                                    cycles.port,
                                                    cycles.write_back,
                                                    cycles.dram,
                                                    cycles.pipeline,
                                                    macs,
                                                    record.gang_size,
                                                    cycles.total(),
                                                    record.start};
        return std::string(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
    });
    std::array<std::uint64_t, 12> numbers{};
    bytes.copy(reinterpret_cast<char*>(numbers.data()), sizeof numbers);
    KernelResult result;
    result.start = numbers[11];
    result.cycles = numbers[0];
    result.busy = numbers[1];
    result.dependency = numbers[2];
    result.bank = numbers[3];
    result.port = numbers[4];
    result.write_back = numbers[5];
    result.dram = numbers[6];
    result.pipeline = numbers[7];
    result.macs = numbers[8];
    result.gang_size = numbers[9];
    if (numbers[10] != result.cycles) {
        throw std::runtime_error("the parts of a kernel's cycles do not add up");
    }
    return result;
}

}  // namespace contraflow::test
