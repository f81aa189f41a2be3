#include "device/precision.h"

#include <map>
#include <stdexcept>

#include <ATen/autocast_mode.h>

#include "base/strings.h"

namespace cytra::device {
namespace {

const std::map<std::string, Precision>& table() {
  using c10::ScalarType;
  static const std::map<std::string, Precision> precisions = [] {
    std::map<std::string, Precision> all;
    all["32-true"] = {};
    all["64-true"] = {false, ScalarType::Double, ScalarType::Double};
    all["16-true"] = {false, ScalarType::Half, ScalarType::Half};
    all["bf16-true"] = {false, ScalarType::BFloat16, ScalarType::BFloat16};
    all["16-mixed"] = {true, ScalarType::Half, ScalarType::Float};
    all["bf16-mixed"] = {true, ScalarType::BFloat16, ScalarType::Float};
    all["32"] = all["32-true"];
    all["64"] = all["64-true"];
    all["16"] = all["16-mixed"];
    all["bf16"] = all["bf16-mixed"];
    return all;
  }();
  return precisions;
}

}  // namespace

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names = keys_of(table());
  return names;
}

Precision precision_of(const std::string& name) {
  const auto found = table().find(name);
  if (found == table().end()) throw std::logic_error("no precision " + name);
  return found->second;
}

Autocast::Autocast(const Precision& precision, c10::DeviceType device)
    : device_(device), is_on_(precision.is_mixed) {
  if (!is_on_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, precision.compute);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!is_on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, before_);
}

}  // namespace cytra::device
