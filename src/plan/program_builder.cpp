#include "plan/program_builder.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "common/number_key.h"
#include "contraflow/error.h"
#include "plan/layout.h"
#include "plan/mapping.h"
#include "vector/vector_passes.h"

namespace contraflow {

namespace {

class ProgramBuilder {
public:
    ProgramBuilder(const Step& step, const Config& config, const Plan& plan, const std::vector<RamGeometry>& rams,
                   KnownContractions& known)
        : step_(step), config_(config), plan_(plan), known_(known) {
        program_.rams = rams;
        known_.begin_design();
    }

    Program build(const std::vector<std::vector<std::uint32_t>>& dependences) {
        if (step_.sample != kNoTensor) {
            program_.sample = table_of(step_.sample, 0, step_.tensor(step_.sample).words());
        }
        program_.kernels.reserve(step_.kernels.size());
        program_.contractions.reserve(step_.kernels.size());
        for (std::size_t i = 0; i < step_.kernels.size(); ++i) {
            const Kernel& kernel = step_.kernels[i];
            KernelCommand command;
            command.name = kernel.name;
            command.dependences = dependences[i];
            command.macs = kernel.macs();
            command.phase = kernel.phase;
            command.kernel_class = kernel.kernel_class;
            std::visit([&](const auto& work) { add(command, work); }, kernel.work);
            program_.kernels.push_back(std::move(command));
        }
        // Longest chain from each kernel to the end of the step.
        for (std::size_t i = program_.kernels.size(); i-- > 0;) {
            KernelCommand& command = program_.kernels[i];
            command.priority += *std::min_element(command.cycles.begin() + 1, command.cycles.end());
            for (const std::uint32_t dependence : command.dependences) {
                std::uint64_t& behind = program_.kernels[dependence].priority;
                behind = std::max(behind, command.priority);
            }
        }
        return std::move(program_);
    }

private:
    [[nodiscard]] const Placement& placement(TensorId tensor) const { return plan_.placements[index_of(tensor)]; }

    using Shape = KnownContractions::Shape;
    using Alike = KnownContractions::Alike;

    // An operand in its place.
    struct Operand {
        AccessTable table;
        std::size_t shape = 0;
    };

    [[nodiscard]] Operand operand(TensorId tensor, std::int64_t offset, const IndexMap& batch, const IndexMap& row,
                                  const IndexMap& col, const IndexMap& depth, const TokenDigit& token = {}) {
        const Placement& place = placement(tensor);
        const Shape& shape = shape_of(place, {&batch, &row, &col, &depth});
        AccessTable table = shape.table;
        table.present = true;
        table.ram = RamId{place.ram};
        table.base = place.address(offset);
        table.begin = place.base;
        table.end = place.base + place.words;
        table.token = token;
        std::int64_t last = table.base + shape.last;
        if (token.modulus != 0) {
            // A digit of one value never moves the address, and its stride may be no level of the tensor.
            table.token.stride = token.modulus == 1 ? 0 : stride_of(place, token.stride);
            last += (token.modulus - 1) * table.token.stride;
        }
        // No access leaves its tensor, whatever the indices.
        if (table.base < table.begin || last >= table.end) {
            throw std::logic_error("an access leaves tensor " + step_.tensor(tensor).name);
        }
        return {std::move(table), shape.id};
    }

    [[nodiscard]] Operand operand(const Access& access) {
        if (access.tensor == kNoTensor) {
            return {};
        }
        return operand(access.tensor, access.offset, access.batch, access.row, access.col, access.depth, access.token);
    }

    [[nodiscard]] AccessTable table_of(const VectorSegment& segment, const VectorOperand& operand, OperandShape shape) {
        if (operand.tensor == kNoTensor) {
            return {};
        }
        IndexMap row;
        IndexMap col;
        if (shape == OperandShape::Matrix || shape == OperandShape::Column) {
            row = {{segment.rows, operand.row_stride}};
        }
        if (shape == OperandShape::Matrix || shape == OperandShape::Row) {
            col = {{segment.cols, 1}};
        } else if (shape == OperandShape::Loss) {
            col = {{3, 1}};
        }
        return this->operand(operand.tensor, operand.offset, {}, row, col, {}, operand.token).table;
    }

    // The words of a tensor, one after the other.
    [[nodiscard]] AccessTable table_of(TensorId tensor, std::int64_t offset, std::int64_t words) {
        return operand(tensor, offset, {}, {}, {{words, 1}}, {}).table;
    }

    [[nodiscard]] const Shape& shape_of(const Placement& place, const std::array<const IndexMap*, 4>& maps) {
        NumberKey& key = key_;
        key.clear();
        for (const LayoutLevel& level : place.levels) {
            key.add(level.extent).add(level.dense).add(level.stride);
            for (const std::int64_t offset : level.table) {
                key.add(offset);
            }
        }
        for (const IndexMap* map : maps) {
            key.add(-1);
            for (const Digit& digit : *map) {
                key.add(digit.extent).add(digit.stride);
            }
        }
        return known_.shapes.get(key, [&] {
            Shape shape;
            shape.id = known_.num_shapes++;
            OffsetTable* const tables[] = {&shape.table.batch, &shape.table.row, &shape.table.col, &shape.table.depth};
            for (std::size_t i = 0; i < maps.size(); ++i) {
                *tables[i] = offset_table(place, *maps[i]);
                shape.last += tables[i]->empty() ? 0 : *std::max_element(tables[i]->begin(), tables[i]->end());
            }
            shape.table.find_runs();
            return shape;
        });
    }

    void add(KernelCommand& command, const Contraction& work) {
        ContractionCommand contraction;
        contraction.batch = work.batch;
        contraction.rows = work.rows;
        contraction.cols = work.cols;
        contraction.depth = work.depth;
        std::array<std::size_t, 5> shapes{};
        const std::array<const Access*, 5> accesses{&work.a, &work.b, &work.out, &work.bias, &work.residual};
        const std::array<AccessTable*, 5> tables{&contraction.a, &contraction.b, &contraction.out, &contraction.bias,
                                                 &contraction.residual};
        for (std::size_t i = 0; i < accesses.size(); ++i) {
            Operand own = operand(*accesses[i]);
            *tables[i] = std::move(own.table);
            shapes[i] = own.shape;
        }
        contraction.accumulates = work.residual.tensor != kNoTensor && work.residual.tensor == work.out.tensor;
        const MappingRule* const rule = rule_of(command.name);
        const Alike& alike = alike_of(contraction, shapes, rule);
        const MappingChoice& choice = alike.choice;
        if (choice.cycles[1] == static_cast<std::uint64_t>(kNoMapping)) {
            throw ConfigError("engine.mapping: " + rule->pattern + " matches " + command.name +
                              ", which has no mapping of this form on one engine; expected at most engine.interleave "
                              "outputs side by side, no more than there are, and batches only where a tile holds all "
                              "of a batch's outputs");
        }
        contraction.mappings = choice.mappings;
        contraction.costs_like = alike.first;
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
        command.cycles = choice.cycles;
    }

    void add(KernelCommand& command, const VectorKernel& work) {
        VectorCommand vector;
        vector.segments.reserve(work.segments.size());
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
            own.in.reserve(segment.in.size());
            own.out.reserve(segment.out.size());
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
        command.cycles = {0, cycles};
    }

    void add(KernelCommand& command, const DmaTransfer& work) {
        DmaCommand transfer;
        transfer.chip = table_of(work.tensor, work.offset, work.words);
        if (static_cast<std::int64_t>(transfer.chip.col.size()) != work.words && work.words > 1) {
            throw std::logic_error("a transfer cuts a level of tensor " + step_.tensor(work.tensor).name);
        }
        transfer.words = work.words;
        transfer.row_words = work.words_per_row();
        transfer.row_pitch_bytes = work.row_pitch * 4;
        transfer.token = work.token;
        transfer.first_position = work.first_position;
        transfer.dram_address = work.dram_address;
        transfer.to_chip = work.to_chip;
        command.unit = UnitKind::Dma;
        command.command = static_cast<std::uint32_t>(program_.transfers.size());
        program_.transfers.push_back(std::move(transfer));
        const auto beat_words = std::max(1, config_.dma.beat_bytes / 4);
        command.cycles = {0, static_cast<std::uint64_t>(work.words / beat_words + config_.dma.request_latency_cycles +
                                                        config_.dma.response_latency_cycles + 10)};
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

    [[nodiscard]] const MappingRule* rule_of(const std::string& kernel) const {
        for (const MappingRule& rule : config_.engine.mapping) {
            if (fnmatch(rule.pattern.c_str(), kernel.c_str(), 0) == 0) {
                return &rule;
            }
        }
        return nullptr;
    }

    // What engines there are for a kernel.
    void add_engines(NumberKey& key, int engines, const MappingRule* rule) const {
        // Every field but the rules, of which the kernel's own counts: a new field makes this line an error.
        const auto& [count, rows, cols, interleave, partial_sums, multiply, add, broadcast, rules] = config_.engine;
        (void)rules;
        for (const int number : {engines, count, rows, cols, interleave, partial_sums, multiply, add, broadcast}) {
            key.add(number);
        }
        if (rule == nullptr) {
            key.add(-1);
        } else {
            key.add(rule->transposed ? 1 : 0).add(rule->rows).add(rule->cols).add(rule->batches);
        }
    }

    const Alike& alike_of(const ContractionCommand& command, const std::array<std::size_t, 5>& shapes,
                          const MappingRule* rule) {
        NumberKey& key = key_;
        key.clear();
        // Without splitting a kernel runs on one engine however many are free.
        const int engines = config_.schedule_split ? config_.engine.count : 1;
        add_engines(key, engines, rule);
        key.add(command.batch).add(command.rows).add(command.cols).add(command.depth).add(command.accumulates ? 1 : 0);
        const AccessTable* const tables[] = {&command.a, &command.b, &command.out, &command.bias, &command.residual};
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            const AccessTable& table = *tables[i];
            key.add(static_cast<std::int64_t>(shapes[i]));
            if (!table.present) {
                continue;
            }
            const RamGeometry& ram = program_.rams[index_of(table.ram)];
            key.add(ram.banks).add(ram.lanes).add(ram.ports).add(ram.read_latency_cycles);
            key.add(table.base % ram.lanes).add(table.token.divisor).add(table.token.modulus).add(table.token.stride);
        }
        // Which of the operands that move at the same time share a memory.
        const auto shared = [&key](const AccessTable& x, const AccessTable& y) {
            key.add(x.present && y.present && x.ram == y.ram ? 1 : 0);
        };
        shared(command.a, command.b);
        shared(command.out, command.residual);
        shared(command.out, command.bias);
        shared(command.residual, command.bias);
        Alike& alike = known_.alike.get(key, [&] {
            Alike made;
            MappingChoice& choice = made.choice;
            choice = choose_mappings(config_.engine, program_.rams, command, engines, rule);
            choice.mappings.resize(static_cast<std::size_t>(config_.engine.count) + 1);
            choice.cycles.resize(static_cast<std::size_t>(config_.engine.count) + 1, choice.cycles.back());
            return made;
        });
        if (alike.design != known_.design) {
            alike.design = known_.design;
            alike.first = static_cast<std::uint32_t>(program_.contractions.size());
        }
        return alike;
    }

    const Step& step_;
    const Config& config_;
    const Plan& plan_;
    KnownContractions& known_;
    Program program_;
    NumberKey key_;  // at hand
};

}  // namespace

Program build_program(const Step& step, const Config& config, const Plan& plan, const std::vector<RamGeometry>& rams,
                      const std::vector<std::vector<std::uint32_t>>& dependences, KnownContractions& known) {
    return ProgramBuilder(step, config, plan, rams, known).build(dependences);
}

}  // namespace contraflow
