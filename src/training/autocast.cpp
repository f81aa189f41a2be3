#include "training/autocast.h"

#include <ATen/autocast_mode.h>

namespace cytra::training {

Autocast::Autocast(const std::string& precision, c10::DeviceType device)
    : device_(device), on_(precision == "bf16-mixed") {
  if (!on_) return;
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, false);
}

}  // namespace cytra::training
