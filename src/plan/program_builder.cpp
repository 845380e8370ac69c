#include "plan/program_builder.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "plan/layout.h"
#include "plan/mapping.h"
#include "vector/vector_passes.h"

namespace contraflow {

namespace {

class ProgramBuilder {
public:
    ProgramBuilder(const Step& step, const Config& config, const Plan& plan, const std::vector<RamGeometry>& rams)
        : step_(step), config_(config), plan_(plan) {
        program_.rams = rams;
    }

    Program build(const std::vector<std::vector<std::uint32_t>>& dependences) {
        if (step_.sample != kNoTensor) {
            program_.sample = table_of(step_.sample, 0);
            program_.sample.col = offset_table(placement(step_.sample), {{step_.tensor(step_.sample).words(), 1}});
            complete(program_.sample, step_.sample);
        }
        std::vector<std::uint64_t> cycles;
        for (std::size_t i = 0; i < step_.kernels.size(); ++i) {
            const Kernel& kernel = step_.kernels[i];
            KernelCommand command;
            command.name = kernel.name;
            command.dependences = dependences[i];
            command.macs = kernel.macs();
            command.phase = kernel.phase;
            command.kernel_class = kernel.kernel_class;
            std::visit([&](const auto& work) { cycles.push_back(add(command, work)); }, kernel.work);
            program_.kernels.push_back(std::move(command));
        }
        // Longest chain from each kernel to the end of the step.
        for (std::size_t i = program_.kernels.size(); i-- > 0;) {
            KernelCommand& command = program_.kernels[i];
            command.priority += cycles[i];
            for (const std::uint32_t dependence : command.dependences) {
                std::uint64_t& behind = program_.kernels[dependence].priority;
                behind = std::max(behind, command.priority);
            }
        }
        return std::move(program_);
    }

private:
    [[nodiscard]] const Placement& placement(TensorId tensor) const { return plan_.placements[index_of(tensor)]; }

    [[nodiscard]] AccessTable table_of(TensorId tensor, std::int64_t offset) const {
        const Placement& place = placement(tensor);
        AccessTable table;
        table.present = true;
        table.ram = RamId{place.ram};
        table.base = place.address(offset);
        table.begin = place.base;
        table.end = place.base + place.words;
        return table;
    }

    [[nodiscard]] AccessTable table_of(const Access& access) const {
        if (access.tensor == kNoTensor) {
            return {};
        }
        AccessTable table = table_of(access.tensor, access.offset);
        const Placement& place = placement(access.tensor);
        table.batch = offset_table(place, access.batch);
        table.row = offset_table(place, access.row);
        table.col = offset_table(place, access.col);
        table.depth = offset_table(place, access.depth);
        set_token(table, place, access.token);
        complete(table, access.tensor);
        return table;
    }

    [[nodiscard]] AccessTable table_of(const VectorSegment& segment, const VectorOperand& operand,
                                       OperandShape shape) const {
        if (operand.tensor == kNoTensor) {
            return {};
        }
        AccessTable table = table_of(operand.tensor, operand.offset);
        const Placement& place = placement(operand.tensor);
        if (shape == OperandShape::Matrix || shape == OperandShape::Column) {
            table.row = offset_table(place, {{segment.rows, operand.row_stride}});
        }
        if (shape == OperandShape::Matrix || shape == OperandShape::Row) {
            table.col = offset_table(place, {{segment.cols, 1}});
        } else if (shape == OperandShape::Loss) {
            table.col = offset_table(place, {{3, 1}});
        }
        set_token(table, place, operand.token);
        complete(table, operand.tensor);
        return table;
    }

    static void set_token(AccessTable& table, const Placement& place, const TokenDigit& token) {
        table.token = token;
        if (token.modulus != 0) {
            // A digit of one value never moves the address, and its stride may be no level of the tensor.
            table.token.stride = token.modulus == 1 ? 0 : stride_of(place, token.stride);
        }
    }

    // No access leaves its tensor, whatever the indices: the largest offset of each table, added up.
    void complete(AccessTable& table, TensorId tensor) const {
        table.find_runs();
        std::int64_t last = table.base;
        for (const auto* offsets : {&table.batch, &table.row, &table.col, &table.depth}) {
            if (!offsets->empty()) {
                last += *std::max_element(offsets->begin(), offsets->end());
            }
        }
        if (table.token.modulus != 0) {
            last += (table.token.modulus - 1) * table.token.stride;
        }
        if (table.base < table.begin || last >= table.end) {
            throw std::logic_error("an access leaves tensor " + step_.tensor(tensor).name);
        }
    }

    std::uint64_t add(KernelCommand& command, const Contraction& work) {
        ContractionCommand contraction;
        contraction.batch = work.batch;
        contraction.rows = work.rows;
        contraction.cols = work.cols;
        contraction.depth = work.depth;
        contraction.a = table_of(work.a);
        contraction.b = table_of(work.b);
        contraction.out = table_of(work.out);
        contraction.bias = table_of(work.bias);
        contraction.residual = table_of(work.residual);
        contraction.accumulates = work.residual.tensor != kNoTensor && work.residual.tensor == work.out.tensor;
        const MappingChoice& choice = mappings(contraction);
        contraction.mappings = choice.mappings;
        command.unit = UnitKind::Engine;
        command.command = static_cast<std::uint32_t>(program_.contractions.size());
        // With n engines free, the gang that is done first; the smaller of equals.
        command.gang_for.push_back(0);
        std::size_t best = 1;
        for (std::size_t gang = 1; gang < choice.cycles.size(); ++gang) {
            if (config_.schedule_split && choice.cycles[gang] < choice.cycles[best]) {
                best = gang;
            }
            command.gang_for.push_back(static_cast<int>(best));
        }
        program_.contractions.push_back(std::move(contraction));
        return choice.cycles[best];
    }

    std::uint64_t add(KernelCommand& command, const VectorKernel& work) {
        VectorCommand vector;
        std::uint64_t cycles = 0;
        for (const VectorSegment& segment : work.segments) {
            VectorSegmentCommand own;
            own.op = segment.op;
            own.rows = segment.rows;
            own.cols = segment.cols;
            own.scalar = segment.scalar;
            own.first_row = segment.first_row;
            own.row_count = segment.row_count;
            own.loss_slot = segment.loss_slot;
            for (std::size_t i = 0; i < segment.in.size(); ++i) {
                own.in.push_back(table_of(segment, segment.in[i], input_shape(segment.op, i)));
            }
            for (std::size_t i = 0; i < segment.out.size(); ++i) {
                own.out.push_back(table_of(segment, segment.out[i], output_shape(segment.op, i)));
            }
            cycles += predicted_cycles(own);
            vector.segments.push_back(std::move(own));
        }
        command.unit = UnitKind::Vector;
        command.command = static_cast<std::uint32_t>(program_.vectors.size());
        program_.vectors.push_back(std::move(vector));
        return cycles;
    }

    std::uint64_t add(KernelCommand& command, const DmaTransfer& work) {
        DmaCommand transfer;
        transfer.chip = table_of(work.tensor, work.offset);
        transfer.chip.col = offset_table(placement(work.tensor), {{work.words, 1}});
        complete(transfer.chip, work.tensor);
        if (static_cast<std::int64_t>(transfer.chip.col.size()) != work.words && work.words > 1) {
            throw std::logic_error("a transfer cuts a level of tensor " + step_.tensor(work.tensor).name);
        }
        transfer.words = work.words;
        transfer.dram_address = work.dram_address;
        transfer.to_chip = work.to_chip;
        command.unit = UnitKind::Dma;
        command.command = static_cast<std::uint32_t>(program_.transfers.size());
        program_.transfers.push_back(std::move(transfer));
        const auto beat_words = std::max(1, config_.dma.beat_bytes / 4);
        return static_cast<std::uint64_t>(work.words / beat_words + config_.dma.request_latency_cycles +
                                          config_.dma.response_latency_cycles + 10);
    }

    // Beats of all passes without memory conflicts, and their latencies: orders kernels, is reported nowhere.
    [[nodiscard]] std::uint64_t predicted_cycles(const VectorSegmentCommand& segment) const {
        const std::int64_t lanes = config_.vector.lanes;
        const std::int64_t beats = (segment.cols + lanes - 1) / lanes;
        std::uint64_t cycles = 0;
        for (const VectorPass& pass : vector_passes(config_.vector, config_.engine, segment)) {
            const std::int64_t width = std::min<std::int64_t>(segment.cols, lanes);
            const std::int64_t special = (pass.exps + pass.erfs + pass.tanhs) *
                                         ((width + config_.vector.special_lanes - 1) / config_.vector.special_lanes);
            const std::int64_t beat = std::max<std::int64_t>({1, pass.adds + pass.compares, pass.multiplies, special});
            cycles += static_cast<std::uint64_t>((pass.single_row ? 1 : segment.rows) * beats * beat);
            cycles += vector_pass_latency(config_.vector, config_.engine, program_.rams, segment, pass);
        }
        return cycles;
    }

    // Kernels of the same shape, strides and memories get the same mappings.
    const MappingChoice& mappings(const ContractionCommand& command) {
        std::string key;
        const auto add_number = [&key](std::int64_t number) {
            key.append(reinterpret_cast<const char*>(&number), sizeof number);
        };
        add_number(command.batch);
        add_number(command.rows);
        add_number(command.cols);
        add_number(command.depth);
        add_number(command.accumulates ? 1 : 0);
        const AccessTable* tables[] = {&command.a, &command.b, &command.out, &command.bias, &command.residual};
        for (const AccessTable* table : tables) {
            add_number(table->present ? 1 : 0);
            if (!table->present) {
                continue;
            }
            const RamGeometry& ram = program_.rams[index_of(table->ram)];
            add_number(ram.banks);
            add_number(ram.lanes);
            add_number(ram.ports);
            add_number(ram.read_latency_cycles);
            add_number(table->base % ram.lanes);
            add_number(table->token.modulus == 0 ? 0 : table->token.stride);
            for (const AccessTable* other : tables) {
                add_number(other->present && other->ram == table->ram ? 1 : 0);
            }
            for (const auto* offsets : {&table->batch, &table->row, &table->col, &table->depth}) {
                add_number(static_cast<std::int64_t>(offsets->size()));
                key.append(reinterpret_cast<const char*>(offsets->data()), offsets->size() * sizeof(std::int32_t));
            }
        }
        const auto [entry, is_new] = choices_.try_emplace(std::move(key));
        if (is_new) {
            entry->second = choose_mappings(config_.engine, program_.rams, command,
                                            config_.schedule_split ? config_.engine.count : 1);
            // Without splitting a kernel runs on one engine however many are free.
            entry->second.mappings.resize(static_cast<std::size_t>(config_.engine.count) + 1);
            entry->second.cycles.resize(static_cast<std::size_t>(config_.engine.count) + 1,
                                        entry->second.cycles.back());
        }
        return entry->second;
    }

    const Step& step_;
    const Config& config_;
    const Plan& plan_;
    Program program_;
    std::map<std::string, MappingChoice> choices_;
};

}  // namespace

Program build_program(const Step& step, const Config& config, const Plan& plan, const std::vector<RamGeometry>& rams,
                      const std::vector<std::vector<std::uint32_t>>& dependences) {
    return ProgramBuilder(step, config, plan, rams).build(dependences);
}

}  // namespace contraflow
