#include "device/fast_precision.h"

#include "base/log.h"
#include "device/backend.h"
#include "device/precision.h"

namespace cytra::device {

std::string slow_precision(const std::string& precision, c10::Device device) {
  const c10::ScalarType type = precision_of(precision).compute;
  if (type != c10::kHalf && type != c10::kBFloat16) return "";
  return backend_of(device).why_slow(type, device);
}

void warn_of_slow_precision(const std::string& precision, c10::Device device) {
  const std::string why = slow_precision(precision, device);
  if (why.empty()) return;
  log::warn("trainer.precision={}: slow, {}; trainer.precision={} is faster here",
            precision,
            why,
            backend_of(device).fast_precision());
}

std::string precision_on(const std::string& asked, c10::Device device) {
  const std::string why = slow_precision(asked, device);
  if (why.empty() || !precision_of(asked).is_mixed || !is_accelerator(device)) return asked;
  const std::string fast = backend_of(device).fast_precision();
  log::info("trainer.precision: {} in place of {}, as {}", fast, asked, why);
  return fast;
}

bool uses_tensor_cores(const std::string& precision, c10::Device device) {
  return backend_of(device).has_tensor_cores(precision_of(precision).compute, device);
}

std::string precision_to_run(const std::optional<std::string>& asked,
                             const std::string& trained,
                             c10::Device device) {
  if (asked) {
    const std::string fitting = precision_on(*asked, device);
    warn_of_slow_precision(fitting, device);
    return fitting;
  }
  const c10::ScalarType type = precision_of(trained).compute;
  if (type != c10::kHalf && type != c10::kBFloat16) return "32";
  const std::string why = slow_precision(trained, device);
  if (why.empty()) {
    log::info("precision: {}, that of the training; trainer.precision=32 for float32", trained);
    return trained;
  }
  log::info("precision: 32; the training had {}, but {}", trained, why);
  return "32";
}

}  // namespace cytra::device
