#include "device/cuda_graph.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/tape.h"

namespace cytra::device {
namespace {

using test::Tape;
using Tensors = std::vector<at::Tensor>;

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Tape::intercept>());
}

/// Calls that are recorded on this CPU.
class CUDAGraphWrapper : public ::testing::Test {
 protected:
  CUDAGraphWrapper() {
    set_recorder(at::kCPU, [](c10::Device) -> Recorder* { return new Tape; });
    Tape::plays = 0;
  }
  ~CUDAGraphWrapper() override {
    set_recorder(at::kCPU, [](c10::Device) -> Recorder* { throw NotRecordable("no tape here"); });
  }
  const at::Tensor weight_ = at::randn({4, 3});
  const Tensors sample_{at::randn({2, 3}), at::randn({2, 4})};
};

TEST_F(CUDAGraphWrapper, ReplaysTheCallForOtherInputs) {
  int64_t calls = 0;
  const auto call = [&](const Tensors& inputs) {
    ++calls;
    const at::Tensor product = at::linear(inputs[0], weight_) + inputs[1];
    return Tensors{product.relu(), product.sum(1)};
  };
  device::CUDAGraphWrapper graph(call, sample_);
  EXPECT_EQ(calls, 5);  // three rehearsals, the recording, the comparison
  const Tensors first{at::randn({2, 3}), at::randn({4, 2}).t()},
      second{at::randn({2, 3}), at::randn({2, 4})};
  const Tensors before = graph(first), after = graph(second);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(Tape::plays, 3);
  for (const auto& [inputs, outputs] : {std::pair(first, before), {second, after}}) {
    const Tensors expected = call(inputs);
    ASSERT_EQ(outputs.size(), 2);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::allclose(outputs[i], expected[i])) << i;
  }
}

TEST_F(CUDAGraphWrapper, RecordsWithoutAStateInWhichOtherThreadsMayNotWait) {
  struct Strict final : Recorder {
    void wait() override {}
    std::vector<at::Tensor> rehearse(const Work& work, bool may_wait) override {
      EXPECT_TRUE(may_wait);
      return work();
    }
    std::unique_ptr<Recording> record(const Work&) override {
      EXPECT_FALSE(recording_mutex().try_lock()) << "held";
      throw NotRecordable("enough was seen");
    }
  };
  set_recorder(at::kCPU, [](c10::Device) -> Recorder* { return new Strict; });
  EXPECT_NE(message_of<ConfigError>([&] {
              device::CUDAGraphWrapper graph([](const Tensors& inputs) { return inputs; }, sample_);
            }).find("enough was seen"),
            std::string::npos);
}

TEST_F(CUDAGraphWrapper, RefusesOtherShapesAndTypes) {
  device::CUDAGraphWrapper graph([](const Tensors& inputs) { return Tensors{inputs[0] * 2}; },
                                 sample_);
  const auto said = [&](const Tensors& inputs) {
    return message_of<DataError>([&] { graph(inputs); });
  };
  EXPECT_NE(said({at::zeros({2, 3}), at::zeros({3, 4})})
                .find("input 1 is Float (3,4), it was recorded with Float (2,4)"),
            std::string::npos);
  EXPECT_NE(said({at::zeros({2, 3}, at::kDouble), at::zeros({2, 4})}).find("input 0 is Double"),
            std::string::npos);
  EXPECT_NE(said({at::zeros({2, 3})}).find("1 inputs, the recorded call has 2"), std::string::npos);
}

TEST_F(CUDAGraphWrapper, RefusesACallThatDependsOnMore) {
  const auto said = [&](const device::CUDAGraphWrapper::Call& call) {
    return message_of<ConfigError>([&] { device::CUDAGraphWrapper graph(call, sample_); });
  };
  double counted = 0;
  EXPECT_NE(said([&](const Tensors& inputs) {
              return Tensors{inputs[0] * ++counted};
            }).find("depends on more than its inputs"),
            std::string::npos);
  EXPECT_NE(said([](const Tensors& inputs) {
              return Tensors{inputs[0] * inputs[0].sum().item<double>()};
            }).find("is read on the host"),
            std::string::npos);
}

TEST(CUDAGraphWrapperOnACpu, SaysThatItIsForAGpu) {
  EXPECT_NE(message_of<ConfigError>([] {
              device::CUDAGraphWrapper graph([](const Tensors& inputs) { return inputs; },
                                             {at::zeros({2, 3})});
            }).find("CUDAGraphWrapper: "),
            std::string::npos);
}

}  // namespace
}  // namespace cytra::device
