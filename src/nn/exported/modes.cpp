#include "nn/exported/modes.h"

#include <array>

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
  AutocastOff& operator=(AutocastOff&&) = delete;

 private:
  static constexpr std::array<at::DeviceType, 2> kDevices{at::kCPU, at::kCUDA};
  std::array<bool, 2> was_on_{};
};

}  // namespace

const char* training_argument(const std::string& short_name) {
  const std::string name =
      short_name.ends_with("_") ? short_name.substr(0, short_name.size() - 1) : short_name;
  if (name.ends_with("dropout")) return "train";
  if (name == "instance_norm") return "use_input_stats";
  return name == "batch_norm" || name.starts_with("rrelu") ? "training" : "";
}

bool has_mode(const OperatorCall& op) {
  if (op.has("running_mean") && op.value("running_mean") < 0) return false;
  return *training_argument(op.short_name()) != '\0';
}

bool trains(const OperatorCall& op) {
  return has_mode(op) && op.flag(training_argument(op.short_name())).value_or(false);
}

bool is_random(const std::string& short_name) {
  static const std::string known =
      " rand rand_like randn randn_like randint randint_like randperm bernoulli bernoulli_ normal "
      "normal_ uniform_ random_ multinomial exponential_ poisson ";
  return known.find(" " + short_name + " ") != std::string::npos;
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
