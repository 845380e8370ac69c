// A machine that makes no progress while work is left stops and says what waits for what.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "contraflow/step.h"
#include "plan/planner.h"
#include "support/expected_reports.h"
#include "support/machine_harness.h"
#include "top/machine.h"

using namespace contraflow;

TEST_CASE("a kernel that can never start is named, and the run ends") {
    const Config config = test::tiny_config({});
    const Step step = build_training_step(config);
    Program program = plan_step(step, config).program;
    const auto stuck = std::find_if(program.kernels.begin(), program.kernels.end(), [](const KernelCommand& kernel) {
        return kernel.name == "encoder.0.attn.fwd.scores";
    });
    REQUIRE(stuck != program.kernels.end());
    stuck->dependences.push_back(static_cast<std::uint32_t>(stuck - program.kernels.begin()));

    MachineOptions options;
    options.run_mode = RunMode::Leap;
    options.values = false;
    Machine machine("top", config, program, options);
    test::expect_reports(sc_core::SC_ERROR);
    try {
        machine.run(test::random_samples(config, 1));
        FAIL("the run ended as if nothing were wrong");
    } catch (const sc_core::sc_report& report) {
        const std::string text = report.get_msg();
        CHECK(text.find("no block makes progress") != std::string::npos);
        CHECK(text.find("encoder.0.attn.fwd.scores waits for encoder.0.attn.fwd.scores") != std::string::npos);
        for (const char* block : {"top.sequencer: step 0", "top.engine0: idle", "top.vector0: idle", "top.dma: "}) {
            CAPTURE(block, text);
            CHECK(text.find(block) != std::string::npos);
        }
    }
}
