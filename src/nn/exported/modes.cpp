#include "nn/exported/modes.h"

#include <array>
#include <map>
#include <set>

#include <ATen/autocast_mode.h>

namespace cytra::nn {
namespace {

/// Turns autocast off, as `with torch.autocast(..., enabled=False)`.
class AutocastOff {
 public:
  AutocastOff() {
    for (std::size_t i = 0; i < kDevices.size(); ++i) {
      was_on_[i] = at::autocast::is_autocast_enabled(kDevices[i]);
      if (was_on_[i]) at::autocast::set_autocast_enabled(kDevices[i], false);
    }
  }
  ~AutocastOff() {
    for (std::size_t i = 0; i < kDevices.size(); ++i)
      if (was_on_[i]) at::autocast::set_autocast_enabled(kDevices[i], true);
  }
  AutocastOff(const AutocastOff&) = delete;
  AutocastOff& operator=(const AutocastOff&) = delete;

 private:
  static constexpr std::array<at::DeviceType, 2> kDevices{at::kCPU, at::kCUDA};
  std::array<bool, 2> was_on_{};
};

}  // namespace

const char* training_argument(const std::string& short_name) {
  static const std::map<std::string, const char*> known{{"dropout", "train"},
                                                        {"dropout_", "train"},
                                                        {"feature_dropout", "train"},
                                                        {"feature_dropout_", "train"},
                                                        {"alpha_dropout", "train"},
                                                        {"alpha_dropout_", "train"},
                                                        {"feature_alpha_dropout", "train"},
                                                        {"feature_alpha_dropout_", "train"},
                                                        {"native_dropout", "train"},
                                                        {"batch_norm", "training"},
                                                        {"instance_norm", "use_input_stats"},
                                                        {"rrelu", "training"},
                                                        {"rrelu_", "training"},
                                                        {"rrelu_with_noise", "training"}};
  const auto found = known.find(short_name);
  return found == known.end() ? "" : found->second;
}

bool has_mode(const OperatorCall& op) {
  if (op.has("running_mean") && op.value("running_mean") < 0) return false;
  return *training_argument(op.short_name()) != '\0';
}

bool trains(const OperatorCall& op) {
  return has_mode(op) && op.flag(training_argument(op.short_name())).value_or(false);
}

bool is_random(const std::string& short_name) {
  static const std::set<std::string> known{"rand",
                                           "rand_like",
                                           "randn",
                                           "randn_like",
                                           "randint",
                                           "randint_like",
                                           "randperm",
                                           "bernoulli",
                                           "bernoulli_",
                                           "normal",
                                           "normal_",
                                           "uniform_",
                                           "random_",
                                           "multinomial",
                                           "exponential_",
                                           "poisson"};
  return known.count(short_name) > 0;
}

std::optional<ops::Activation> activation_of(const OperatorCall& op) {
  using A = ops::Activation;
  std::string name = op.short_name();
  if (!name.empty() && name.back() == '_') name.pop_back();
  if (name == "relu") return A{A::kRelu};
  if (name == "silu") return A{A::kSilu};
  if (name == "leaky_relu") {
    if (const auto slope = op.real("negative_slope")) return A{A::kLeakyRelu, *slope};
  } else if (name == "elu") {
    const auto alpha = op.real("alpha");
    if (alpha && op.real("scale") == 1.0 && op.real("input_scale") == 1.0)
      return A{A::kElu, *alpha};
  } else if (name == "gelu" && op.argument("approximate").constant.isString() &&
             op.argument("approximate").constant.toStringRef() == "none") {
    return A{A::kGelu};
  }
  return {};
}

ExportedRun outside_autocast(ExportedRun run) {
  return [run = std::move(run)](Values& values, c10::Device device) {
    const AutocastOff off;
    run(values, device);
  };
}

}  // namespace cytra::nn
