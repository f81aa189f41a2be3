#include "training/trainer_options.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/strings.h"
#include "training/callback.h"
#include "training/profiler.h"

namespace cytra::training {

using config::Kind;
using config::Node;

Amount amount_of(const Node& node, Amount otherwise) {
  if (node.is_null()) return otherwise;
  if (node.kind == Kind::integer && node.integer >= 0) return {node.integer, 0};
  if (node.kind == Kind::real && node.real >= 0 && node.real <= 1) return {-1, node.real};
  config::throw_bad_value(node, "a number of batches (10) or a share from 0.0 to 1.0 of them");
}

double duration_s(const Node& node) {
  const std::string expected = "a time as DD:HH:MM:SS, or a map of days, hours, minutes, seconds";
  constexpr double kUnits[] = {86400, 3600, 60, 1};
  double seconds = 0;
  if (node.is_map()) {
    const std::vector<std::string> names{"days", "hours", "minutes", "seconds"};
    for (const auto& [name, value] : node.map) {
      const auto unit = std::ranges::find(names, name);
      if (unit == names.end())
        config::throw_bad_value(node, expected + "." + suggestion(name, names));
      seconds += value.as<double>() * kUnits[unit - names.begin()];
    }
    return seconds;
  }
  if (node.kind != Kind::string) config::throw_bad_value(node, expected);
  const std::vector<std::string> parts = split(node.string, ':');
  if (parts.size() != 4) config::throw_bad_value(node, expected);
  for (std::size_t p = 0; p < 4; ++p) {
    char* end = nullptr;
    const double value = std::strtod(parts[p].c_str(), &end);
    if (parts[p].empty() || *end != 0 || !(value >= 0) || std::isinf(value))
      config::throw_bad_value(node, expected);
    seconds += value * kUnits[p];
  }
  return seconds;
}

int64_t Amount::of(int64_t all, const std::string& key) const {
  if (count >= 0) return std::min(count, all);
  const auto some = static_cast<int64_t>(std::floor(share * static_cast<double>(all)));
  if (some == 0 && share > 0 && all > 0) {
    throw ConfigError("{}: {} of {} batches is less than one, expected at least {:.3g}",
                      key,
                      share,
                      all,
                      1.0 / static_cast<double>(all));
  }
  return some;
}

void TrainerOptions::check() {
  if (gradient_clip_norm_type == 0)
    throw ConfigError("gradient_clip_norm_type: 0, expected a number above 0, or inf");
  limit_train_batches = amount_of(given_.limit_train_batches, limit_train_batches);
  limit_val_batches = amount_of(given_.limit_val_batches, limit_val_batches);
  limit_test_batches = amount_of(given_.limit_test_batches, limit_test_batches);
  overfit_batches = amount_of(given_.overfit_batches, overfit_batches);
  val_check_interval = amount_of(given_.val_check_interval, val_check_interval);
  for (const auto& [key, amount] : {std::pair("limit_train_batches", limit_train_batches),
                                    std::pair("limit_val_batches", limit_val_batches),
                                    std::pair("limit_test_batches", limit_test_batches),
                                    std::pair("overfit_batches", overfit_batches),
                                    std::pair("val_check_interval", val_check_interval)}) {
    if (amount.count < 0 && !(amount.share >= 0 && amount.share <= 1))
      throw ConfigError(
          "trainer.{}: expected a number of batches or a share from 0 to 1 of them, got {}",
          key,
          amount.share);
  }
  if (val_check_interval.is_none()) {
    const std::string expected = "at least 1 batch, or a share above 0.0";
    if (given_.val_check_interval.is_null())
      throw ConfigError("trainer.val_check_interval: expected " + expected + ", got 0");
    config::throw_bad_value(given_.val_check_interval, expected);
  }
  if (!check_val_every_n_epoch && val_check_interval.count < 0) {
    throw ConfigError(
        "check_val_every_n_epoch: null counts batches over epochs; expected val_check_interval as "
        "a number of batches");
  }
  make_profilers(profiler, "profiler");  // is it right?
  if (!given_.max_time.is_null()) max_seconds = duration_s(given_.max_time);
  if (!given_.devices.is_null()) devices = Devices::of(given_.devices);
  const Node& patience = given_.process_timeout;
  if (patience.kind == Kind::integer || patience.kind == Kind::real) {
    process_timeout_s = patience.as<double>();
  } else if (!patience.is_null()) {
    process_timeout_s = duration_s(patience);
  }
  if (!(process_timeout_s >= 1 && process_timeout_s <= 1e7))
    config::throw_bad_value(patience, "a time of 1 s or more");
  const Node& deterministic = given_.deterministic;
  if (deterministic.kind == Kind::boolean) {
    deterministic_mode = deterministic.boolean ? "true" : "false";
  } else if (deterministic.kind == Kind::string && deterministic.string == "warn") {
    deterministic_mode = "warn";
  } else if (!deterministic.is_null()) {
    config::throw_bad_value(deterministic, "true, false or warn");
  }
  const Node& fast = given_.fast_dev_run;
  if (fast.kind == Kind::boolean) {
    fast_dev_run = fast.boolean ? 1 : 0;
  } else if (fast.kind == Kind::integer && fast.integer >= 0) {
    fast_dev_run = fast.integer;
  } else if (!fast.is_null()) {
    config::throw_bad_value(fast, "true, false or a number of batches");
  }
  if (devices.count < 0 || fast_dev_run < 0)
    throw ConfigError("trainer.devices, trainer.fast_dev_run: expected numbers of at least 0");
  if (deterministic_mode != "true" && deterministic_mode != "false" && deterministic_mode != "warn")
    throw ConfigError("trainer.deterministic: expected true, false or warn, got '" +
                      deterministic_mode + "'");
  given_ = {};             // what is set from here on counts
  if (fast_dev_run > 0) {  // as Lightning's
    limit_train_batches = limit_val_batches = limit_test_batches = {fast_dev_run, 0};
    max_steps = fast_dev_run;
    max_epochs = 1;
    num_sanity_val_steps = 0;
    val_check_interval = {};
    check_val_every_n_epoch = 1;
  } else if (!overfit_batches.is_none()) {
    limit_train_batches = limit_val_batches = overfit_batches;
  }
  if (max_epochs < 0 && max_steps < 0 && max_seconds < 0)
    throw ConfigError("expected max_epochs, max_steps or max_time: nothing ends this training");
}

}  // namespace cytra::training
