#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include "config/registry.h"
#include "device/precision.h"
#include "nn/model.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

constexpr int64_t kFeatures = 65536;  // values: more than any weight of the network below

struct FeatureCopies {
  int64_t copies = 0, casts = 0;
};
FeatureCopies* counted = nullptr;

std::unique_ptr<at::ObserverContext> count_feature_copy(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (function.name() != std::string_view("aten::copy_") || counted == nullptr ||
      inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor())
    return nullptr;
  const at::Tensor &to = inputs[0].toTensor(), &from = inputs[1].toTensor();
  if (to.numel() < kFeatures) return nullptr;
  ++counted->copies;
  counted->casts += to.scalar_type() == from.scalar_type() ? 0 : 1;
  return nullptr;
}

/// Of a DynUNet's forward and backward pass, channels-last.
FeatureCopies feature_copies(const std::string& precision) {
  const auto model = make<nn::Model>(
      test::component("monai.networks.nets.DynUNet",
                      config::parse_yaml("{spatial_dims: 2, in_channels: 1, out_channels: 1, "
                                         "filters: [16, 32, 64]}",
                                         "test")));
  model->settings.channels_last = true;
  nn::place(*model, at::kCPU);
  const at::Tensor image = at::randn({2, 1, 64, 64});
  FeatureCopies result;
  counted = &result;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count_feature_copy)
                                                     .needsInputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  at::Tensor logits;
  {
    const device::Autocast autocast(device::precision_of(precision), at::kCPU);
    logits = (*model)(image);
  }
  logits.to(at::kFloat).square().mean().backward();
  at::removeCallback(handle);
  counted = nullptr;
  return result;
}

/// A concatenation's gradient is strided, so each of its parts is copied for what comes before. In
/// half precision a convolution that oneDNN is not trusted with casts its tensors.
TEST(FeatureCopies, StepsOfDynUNetCastNoFeatures) {
  const FeatureCopies found = feature_copies("32");
  EXPECT_EQ(found.casts, 0);
  EXPECT_LE(found.copies, 2);
}

/// So that the count above means something.
TEST(FeatureCopies, AreCounted) {
  FeatureCopies result;
  counted = &result;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count_feature_copy)
                                                     .needsInputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  const at::Tensor large = at::zeros({kFeatures});
  const at::Tensor a = large.to(at::kBFloat16), b = large.clone();
  at::removeCallback(handle);
  counted = nullptr;
  EXPECT_EQ(result.casts, 1);
  EXPECT_EQ(result.copies, 2);
}

}  // namespace
}  // namespace cytra
