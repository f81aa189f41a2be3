#include "training/trainer/compiled_step.h"

#include "base/files.h"
#include "base/log.h"
#include "tests/support/tape.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"

namespace cytra {
namespace {

using test::Tape;
using test::Tiny;

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Tape::intercept>());
}

// A norm that even a CPU takes without looking at it.
const std::string kTapeOptions =
    "max_epochs: 6, gradient_clip_val: 0.5, gradient_clip_norm_type: 3";
const std::string kSchedule = "{_target_: CosineAnnealingLR, warmup_steps: 2}";

/// Trainings by recorded steps on this CPU, and what is said of them.
class CompiledStep : public ::testing::Test {
 protected:
  CompiledStep() {
    device::set_recorder(at::kCPU, [](c10::Device) -> device::Recorder* { return new Tape; });
    Tape::rehearsals = Tape::recordings = Tape::plays = 0;
    Tape::behind_s = 0;
    log::set_file(dir_ / "log.txt");
  }
  ~CompiledStep() override {
    log::set_file("");
    device::set_recorder(at::kCPU, [](c10::Device) -> device::Recorder* {
      throw device::NotRecordable("no tape here");
    });
  }
  std::string said() const { return read_file(dir_ / "log.txt"); }

  /// The weights after a training of 7 images in batches of 2: two shapes.
  std::vector<double> trained(std::optional<bool> compiles,
                              const std::string& optimizer = "{_target_: AdamW, lr: 0.1}",
                              const std::string& options = kTapeOptions,
                              const std::function<void(Tiny&)>& change = {}) const {
    Tiny tiny(options, "{}", 0.3, optimizer, kSchedule);
    tiny.task->net->settings.compile_model = compiles;
    if (change) change(tiny);
    tiny.fit(7, 2);
    return tiny.weights();
  }
  static void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-5 * std::abs(b[i]));  // the learning rate is a float here
  }
  test::TmpDir dir_;
};

TEST_F(CompiledStep, RecordedStepsTrainAsThoseThatAreNot) {
  for (const char* optimizer : {"{_target_: AdamW, lr: 0.1}",
                                "{_target_: Adam, lr: 0.1, amsgrad: true}",
                                "{_target_: SGD, lr: 0.05, momentum: 0.9}"}) {
    SCOPED_TRACE(optimizer);
    Tape::recordings = Tape::plays = 0;
    const std::vector<double> eager = trained(false, optimizer);
    EXPECT_EQ(Tape::recordings, 0);
    expect_near(trained(true, optimizer), eager);
    EXPECT_EQ(Tape::recordings, 4);  // two shapes, each with its gradients and its update
    // of 18 and 6 steps, 3 each are rehearsed
    EXPECT_EQ(Tape::plays, 2 * (15 + 3));
    EXPECT_EQ(said().find("not recorded"), std::string::npos) << said();
    for (const char* shape : {"x 2x1x4x4", "x 1x1x4x4"})
      EXPECT_NE(said().find(std::string("steps of ") + shape + " are recorded"), std::string::npos);
  }
}

TEST_F(CompiledStep, ScalesTheLossOnTheDevice) {
  const std::string options =
      kTapeOptions + ", precision: 16-mixed, grad_scaler: {init_scale: 8, growth_interval: 4}";
  expect_near(trained(true, "{_target_: AdamW, lr: 0.1}", options),
              trained(false, "{_target_: AdamW, lr: 0.1}", options));
  EXPECT_GT(Tape::plays, 0);
}

// What a step gives that can't be judged lives no longer than the step: no recording may hold it.
TEST_F(CompiledStep, OverflowsInTheStepThatIsRecordedLeaveNothingStale) {
  for (const char* scale : {"4194304", "16777216", "33554432", "67108864"}) {
    SCOPED_TRACE(scale);
    Tape::plays = 0;
    const std::string options = kTapeOptions +
                                ", precision: 16-mixed, grad_scaler: {growth_interval: 100, "
                                "init_scale: " +
                                scale + "}";
    expect_near(trained(true, "{_target_: AdamW, lr: 0.1}", options),
                trained(false, "{_target_: AdamW, lr: 0.1}", options));
    EXPECT_GT(Tape::plays, 0);
  }
  EXPECT_EQ(said().find("not recorded"), std::string::npos) << said();
}

TEST_F(CompiledStep, AnUpdateWithoutARecordableFormStaysAsItIs) {
  expect_near(trained(true, "{_target_: Lion, lr: 0.01}"),
              trained(false, "{_target_: Lion, lr: 0.01}"));
  EXPECT_EQ(Tape::recordings, 2);
  EXPECT_NE(said().find("the update of Lion is not"), std::string::npos) << said();
}

TEST_F(CompiledStep, AReadOnTheHostEndsRecording) {
  const auto reads = [](Tiny& tiny) {
    tiny.task->factor = [&tiny](int64_t) {
      return tiny.task->net->conv->weight.sum().item<double>() > 0 ? 1.0 : 2.0;
    };
  };
  const std::string adam = "{_target_: AdamW, lr: 0.1}";
  expect_near(trained(true, adam, kTapeOptions, reads), trained(false, adam, kTapeOptions, reads));
  EXPECT_EQ(Tape::recordings, 0);
  EXPECT_NE(said().find("not recorded: aten::_local_scalar_dense is read on the host"),
            std::string::npos)
      << said();
}

TEST_F(CompiledStep, MemoryThatIsMissingForTheCheckEndsRecording) {
  const std::string adam = "{_target_: AdamW, lr: 0.1}";
  const std::vector<double> eager = trained(false);
  for (const int64_t at_pass : {4, 5, 6, 7, 9, 11}) {  // while it is rehearsed, checked, played
    const auto fills = [&](Tiny& tiny) {
      tiny.task->factor = [passes = int64_t{0}, at_pass](int64_t) mutable {
        TORCH_CHECK_WITH(OutOfMemoryError, ++passes != at_pass, "CUDA out of memory");
        return 1.0;
      };
    };
    expect_near(trained(true, adam, kTapeOptions, fills), eager);
  }
  EXPECT_NE(said().find("not recorded: memory to record and check them is missing"),
            std::string::npos)
      << said();
}

TEST_F(CompiledStep, ANumberThatTheHostCountsEndsRecording) {
  const auto counts = [](Tiny& tiny) {
    // of the loss, by how many images it has seen: a step that is made twice counts once
    tiny.task->factor = [&tiny](int64_t) {
      return 1.0 + 0.1 * static_cast<double>(tiny.state().step);
    };
  };
  const std::string sgd = "{_target_: SGD, lr: 0.05}";
  expect_near(trained(true, sgd, kTapeOptions, counts), trained(false, sgd, kTapeOptions, counts));
  EXPECT_NE(said().find("the recorded step gave other numbers"), std::string::npos) << said();
}

TEST_F(CompiledStep, ATrainingThatIsTakenUpIsTheSame) {
  const test::TmpDir dir;
  const auto run = [&](const std::string& folder, int64_t stop, const std::string& from) {
    Tiny tiny(
        kTapeOptions,
        "{ema: {_target_: EMAWeightAveraging, decay: 0.8}, saver: {_target_: ModelCheckpoint, "
        "every_n_train_steps: 1, dirpath: '" +
            folder + "'}}",
        0.3);
    tiny.task->net->settings.compile_model = true;
    if (!from.empty()) tiny.trainer->resume(from);
    tiny.recorder->each_step = [stop](training::Context& context) {
      if (context.state.step == stop) throw std::runtime_error("killed");
    };
    try {
      tiny.fit(7, 2);
    } catch (const std::runtime_error&) {
    }
    return tiny.weights();
  };
  const std::vector<double> whole = run(dir / "whole", 0, "");
  for (const int64_t stop : {2, 5, 11}) {
    const std::string folder = dir / std::to_string(stop);
    run(folder, stop, "");
    EXPECT_EQ(run(folder + "b", 0, folder + "/last.ckpt"), whole) << stop;
  }
}

TEST_F(CompiledStep, LeftOpenStepsAreRecordedWhereTheDeviceWaitsForItsHost) {
  const std::vector<double> eager = trained(false), recorded = trained(std::nullopt);
  EXPECT_EQ(Tape::recordings, 4);
  EXPECT_EQ(Tape::plays, 2 * (15 + 3 - 6))
      << "five of the one shape and one of the other are timed";
  expect_near(recorded, eager);
  Tape::recordings = 0;
  Tape::behind_s = 0.05;
  EXPECT_EQ(trained(std::nullopt), recorded) << "to the bit, whatever was decided";
  EXPECT_EQ(Tape::recordings, 0);
  EXPECT_EQ(trained(true), recorded);
}

TEST_F(CompiledStep, LeftOpenWhatCanNotBeRecordedIsMadeAsItIs) {
  trained(std::nullopt, "{_target_: Lion, lr: 0.01}", "max_epochs: 1, accumulate_grad_batches: 2");
  trained(std::nullopt, "{_target_: AdamW}", "max_epochs: 6, profiler: simple");
  EXPECT_EQ(Tape::rehearsals, 0);
}

TEST_F(CompiledStep, ACallbackThatWatchesLayersSeesThem) {
  struct Tap final : nn::Watcher {
    void begin(const torch::nn::Module&, const at::Tensor&) override { ++seen; }
    void end(const at::Tensor&) override {}
    int64_t seen = 0;
  } tap;
  const std::string adam = "{_target_: AdamW, lr: 0.1}";
  const auto watch = [&](Tiny& tiny) {
    tiny.recorder->each_batch = [&](training::Context& context) {
      nn::watcher = context.state.step >= 20 ? &tap : nullptr;
    };
    tiny.recorder->each_step = [](training::Context&) { nn::watcher = nullptr; };
  };
  const std::vector<double> watched = trained(true, adam, kTapeOptions, watch);
  EXPECT_EQ(tap.seen, 4) << "of 24 steps";
  EXPECT_NE(said().find("while a callback watches layers"), std::string::npos) << said();
  EXPECT_EQ(watched, trained(true));
}

TEST_F(CompiledStep, WhatCanNotBeRecordedIsSaid) {
  for (const auto& [options, why] : std::map<std::string, std::string>{
           {"accumulate_grad_batches: 2", "trainer.accumulate_grad_batches=2"},
           {"detect_anomaly: true", "trainer.detect_anomaly=true"}}) {
    trained(true, "{_target_: AdamW, lr: 0.1}", "max_epochs: 1, " + options);
    EXPECT_NE(said().find("not recorded: " + why), std::string::npos) << said();
  }
  trained(true, "{_target_: AdamW}", "max_epochs: 1", [](Tiny& tiny) {
    tiny.task->net->settings.compile_mode = "max-autotune-no-cudagraphs";
  });
  EXPECT_NE(said().find("not recorded: model.compile_mode=max-autotune-no"), std::string::npos);
  EXPECT_EQ(Tape::rehearsals, 0);
}

}  // namespace
}  // namespace cytra
