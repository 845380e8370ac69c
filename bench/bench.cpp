// How fast the simulator runs: cycles per second edge by edge, time per step from event to event, with and without
// values, against the step's bare arithmetic timed in the same run. Each measurement runs in a child process, because
// SystemC elaborates once per process.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <systemc>
#include <vector>

#include "contraflow/dataset.h"
#include "contraflow/load_config.h"
#include "contraflow/simulation.h"
#include "contraflow/special_functions.h"
#include "contraflow/weights.h"
#include "numerics/float_environment.h"
#include "numerics/tile_product.h"
#ifdef CONTRAFLOW_HAVE_EIGEN
#include <Eigen/Dense>
#endif

namespace {

using namespace contraflow;

struct Measurement {
    double seconds_per_step = 0;  // median
    double best_seconds = 0;
    double startup_seconds = 0;
    double cycles_per_step = 0;
    double peak_mb = 0;
    double traced_cycles = 0, seconds_per_traced_cycle = 0, bytes_per_traced_cycle = 0, traced_signals = 0;
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Measurement in_child(const std::function<Measurement()>& measure) {
    int ends[2];
    if (pipe(ends) != 0) {
        std::abort();
    }
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        Measurement result = measure();
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        result.peak_mb = static_cast<double>(usage.ru_maxrss) / 1000;
        const ssize_t written = write(ends[1], &result, sizeof result);
        _exit(written == sizeof result ? 0 : 1);
    }
    close(ends[1]);
    Measurement result;
    const ssize_t count = read(ends[0], &result, sizeof result);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (count != sizeof result || status != 0) {
        fmt::print(stderr, "a measurement failed\n");
        std::exit(1);
    }
    return result;
}

Measurement summary(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    Measurement result;
    result.seconds_per_step = times[times.size() / 2];
    result.best_seconds = times.front();
    return result;
}

Measurement simulate(const Config& config, RunMode run_mode, bool values, int steps,
                     const std::optional<TraceOptions>& trace = std::nullopt) {
    const double start = now();
    SimulationOptions options;
    options.run_mode = run_mode;
    options.values = values;
    Simulation simulation(config, build_training_step(config), options);
    for (const auto& [name, weights] : initial_weights(config)) {
        simulation.set(simulation.step().find(name), weights);
    }
    if (trace) {
        simulation.trace(*trace);
    }
    Dataset data = Dataset::load(config);
    const double ready = now();
    std::vector<double> times;
    double cycles = 0;
    for (int i = 0; i < steps; ++i) {
        const double before = now();
        const StepOutcome outcome = simulation.run({data.sample(static_cast<std::size_t>(i))}).front();
        times.push_back(now() - before);
        cycles = static_cast<double>(outcome.end - outcome.start);
    }
    const double traced_step = trace ? times.at(trace->step) : 0;
    if (times.size() > 2) {
        times.erase(times.begin());  // the first step fills the memo tables
    }
    Measurement result = summary(std::move(times));
    if (trace) {
        const TraceSummary traced = simulation.finish_trace();
        result.traced_cycles = static_cast<double>(traced.cycles);
        result.seconds_per_traced_cycle = (traced_step - result.seconds_per_step) / result.traced_cycles;
        result.bytes_per_traced_cycle = static_cast<double>(traced.bytes) / result.traced_cycles;
        result.traced_signals = static_cast<double>(traced.signals);
    }
    result.startup_seconds = ready - start;
    result.cycles_per_step = cycles;
    return result;
}

// The products of the step and its exp, erf and tanh, with nothing around them: with the usual libraries (Eigen, libm),
// or by the simulator's own fixed-order products and special functions.
Measurement floor_of(const Config& config, bool with_eigen) {
    const ScopedFlushToZero flush;
    const Step step = build_training_step(config);
    std::size_t exps = 0;
    std::size_t erfs = 0;
    std::size_t tanhs = 0;
    std::int64_t largest = 0;
    std::vector<Contraction> products;
    for (const Kernel& kernel : step.kernels) {
        if (const auto* product = std::get_if<Contraction>(&kernel.work)) {
            products.push_back(*product);
            largest = std::max({largest, product->rows * product->depth, product->cols * product->depth,
                                product->rows * product->cols});
        } else if (const auto* vector = std::get_if<VectorKernel>(&kernel.work)) {
            for (const VectorSegment& segment : vector->segments) {
                const auto elements = static_cast<std::size_t>(segment.rows * segment.cols);
                exps += segment.op == VectorOp::SoftmaxForward || segment.op == VectorOp::GeluBackward ||
                                segment.op == VectorOp::CrossEntropy
                            ? elements
                            : 0;
                erfs += segment.op == VectorOp::GeluForward || segment.op == VectorOp::GeluBackward ? elements : 0;
                tanhs += segment.op == VectorOp::TanhForward ? elements : 0;
            }
        }
    }
    std::vector<float> a(static_cast<std::size_t>(largest), 0.5F);
    std::vector<float> b(a);
    std::vector<float> c(a);
    std::vector<float> x(std::max({exps, erfs, tanhs, std::size_t{1}}));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(i % 997) * 0.004F - 2.0F;
    }
    std::vector<float> y(x);
    std::vector<double> times;
    for (int run = 0; run < 20; ++run) {
        const double before = now();
        for (const Contraction& p : products) {
            for (std::int64_t batch = 0; batch < p.batch; ++batch) {
                if (with_eigen) {
#ifdef CONTRAFLOW_HAVE_EIGEN
                    using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
                    Eigen::Map<Matrix>(c.data(), p.rows, p.cols).noalias() =
                        Eigen::Map<const Matrix>(a.data(), p.rows, p.depth) *
                        Eigen::Map<const Matrix>(b.data(), p.depth, p.cols);
#endif
                    continue;
                }
                accumulate_tile(c.data(), static_cast<std::size_t>(p.cols), a.data(), static_cast<std::size_t>(p.rows),
                                b.data(), static_cast<std::size_t>(p.cols), static_cast<std::size_t>(p.rows),
                                static_cast<std::size_t>(p.cols), static_cast<std::size_t>(p.depth));
            }
        }
        if (with_eigen) {
            std::transform(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(exps), y.begin(),
                           [](float v) { return std::exp(v); });
            std::transform(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(erfs), y.begin(),
                           [](float v) { return std::erf(v); });
            std::transform(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(tanhs), y.begin(),
                           [](float v) { return std::tanh(v); });
        } else {
            special_exp(x.data(), y.data(), exps);
            special_erf(x.data(), y.data(), erfs);
            special_tanh(x.data(), y.data(), tanhs);
        }
        times.push_back(now() - before);
    }
    return summary(std::move(times));
}

// Waveforms: what a cycle inside the window costs beyond the step's own time, and a step outside of it.
void measure_traces(const std::string& design, const Config& config) {
    const std::filesystem::path vcd = std::filesystem::temp_directory_path() / fmt::format("bench-{}.vcd", getpid());
    TraceOptions options;
    options.vcd = vcd.string();
    options.step = 3;
    const auto inside = [&](const char* what, const Config& traced, std::vector<std::string> scope) {
        options.kernels = "encoder.0.attn.q.fwd.*";
        options.scope = std::move(scope);
        const Measurement m = in_child([&] { return simulate(traced, RunMode::Leap, true, 8, options); });
        fmt::print("{:<44} {:9.3f} us per traced cycle ({:.0f} cycles, {:.0f} signals, {:.0f} bytes per cycle)\n", what,
                   m.seconds_per_traced_cycle * 1e6, m.traced_cycles, m.traced_signals, m.bytes_per_traced_cycle);
    };
    fmt::print("\n");
    const Config small =
        load_config(design, {{"engine.count", "1"}, {"engine.rows", "4"}, {"engine.cols", "4"}}).config;
    inside("trace of all signals of an engine, 16 PEs", small, {"clk", "engine0"});
    inside("trace of the usual signals", config, {});
    // Steps with and without a trace take turns, because the host's speed drifts; without values, whose arithmetic runs
    // faster or slower by some percent with every other allocation and would hide what the trace costs.
    double with = 1e9;
    double without = 1e9;
    options.kernels.clear();
    options.cycles = CycleRange{0, 1};
    options.step = 0;
    options.scope.clear();
    const auto best = [&](const std::optional<TraceOptions>& trace) {
        return in_child([&] { return simulate(config, RunMode::Leap, false, 40, trace); }).best_seconds;
    };
    for (int i = 0; i < 10; ++i) {
        without = std::min(without, best(std::nullopt));
        with = std::min(with, best(options));
    }
    fmt::print("{:<44} {:9.3f} % slower than without a trace\n", "leap, values off, outside of a trace's window",
               (with / without - 1) * 100);
    std::filesystem::remove(vcd);
}

void print(const char* what, const Measurement& m, double floor_seconds) {
    fmt::print("{:<44} {:9.3f} {:9.3f} {:10.1f} {:9.1f} {:8.2f} {:8.1f}\n", what, m.seconds_per_step * 1e3,
               m.best_seconds * 1e3, m.cycles_per_step / m.seconds_per_step / 1e6, m.startup_seconds * 1e3,
               m.seconds_per_step / floor_seconds, m.peak_mb);
}

}  // namespace

int sc_main(int argc, char* argv[]) {
    const std::string design = argc > 1 ? argv[1] : std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/u50-2enc.ini";
    const Config config = load_config(design, {}).config;
    const Measurement fixed = in_child([&] { return floor_of(config, false); });
    Measurement floor = fixed;
    const char* floor_name = "own code";
#ifdef CONTRAFLOW_HAVE_EIGEN
    floor = in_child([&] { return floor_of(config, true); });
    floor_name = "Eigen and libm";
#endif
    fmt::print(
        "{}\nproducts and exp, erf, tanh alone, ms per step: {} {:.3f} (the floor), own fixed-order code {:.3f}\n\n",
        design, floor_name, floor.seconds_per_step * 1e3, fixed.seconds_per_step * 1e3);
    fmt::print("{:<44} {:>9} {:>9} {:>10} {:>9} {:>8} {:>8}\n", "", "ms/step", "best", "Mcycles/s", "start ms",
               "x floor", "peak MB");
    print("clocked, every edge, values", in_child([&] { return simulate(config, RunMode::Clocked, true, 4); }),
          floor.seconds_per_step);
    print("clocked, every edge, values off", in_child([&] { return simulate(config, RunMode::Clocked, false, 4); }),
          floor.seconds_per_step);
    const Measurement leap = in_child([&] { return simulate(config, RunMode::Leap, true, 40); });
    print("leap, values", leap, floor.seconds_per_step);
    print("leap, values off", in_child([&] { return simulate(config, RunMode::Leap, false, 40); }),
          floor.seconds_per_step);
    measure_traces(design, config);
    fmt::print("\none step on the simulated FPGA: {:.3f} ms\n",
               leap.cycles_per_step / static_cast<double>(config.fabric_hz) * 1e3);
    return 0;
}

int main(int argc, char* argv[]) {
    setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
