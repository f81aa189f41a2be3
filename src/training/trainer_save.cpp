// The part of the Trainer that ends a training and writes checkpoints.
#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "training/processes/processes.h"
#include "training/step.h"
#include "training/trainer.h"

namespace cytra::training {

Parts Trainer::parts() {
  return {task_, optimizer_, scheduler_, scaler_, callbacks_};
}

void Trainer::resume(const std::string& path, bool strict) {
  state_ = load_checkpoint(path, parts(), strict);
  seconds_before_ = state_.seconds;
}

void Trainer::save(const std::string& path) {
  context_.save_to.push_back(path);
  processes_.guard([&] {
    carry_out();
    writer_.wait();
  });
}

void Trainer::carry_out() {
  if (!context_.logged.empty()) log(std::exchange(context_.logged, {}));
  stop_ = stop_ || std::exchange(context_.stop, false);
  if (!agree(!context_.save_to.empty())) return;
  settle();
  write();
}

void Trainer::write() {
  state_.seconds = seconds();
  std::vector<std::string> paths = std::exchange(context_.save_to, {}),
                           remove = std::exchange(context_.remove, {});
  const auto undo = std::exchange(context_.undo_saves, {});
  if (paths.empty() || !processes_.is_first()) return;
  const bool is_forgiven = undo.size() == paths.size();
  // last.ckpt, asked for by several callbacks, comes after all that its state names.
  for (auto path = paths.begin(); path != paths.end();) {
    const bool comes_again = std::find(path + 1, paths.end(), *path) != paths.end();
    path = comes_again ? paths.erase(path) : path + 1;
  }
  writer_.write(take_snapshot(parts(), state_, config_, writer_.reusable()),
                std::move(paths),
                std::move(remove));
  if (!is_forgiven) return;
  try {
    writer_.wait();
  } catch (const Error& error) {
    log::warn("{}; the training goes on without this checkpoint", error.what());
    for (auto one = undo.rbegin(); one != undo.rend(); ++one) (*one)();
  }
}

/// The error under way matters, not those of its aftermath.
void Trainer::on_exception(const std::string& what) {
  if (progress_) progress_->finish();
  context_.batch = nullptr;  // a hook that failed has left it
  try {
    try {
      settle();  // the newest step's numbers, if they are still to be had
    } catch (const std::exception&) {
    }
    writer_.wait();
    state_.batch = edge_;
    for (const auto& callback : callbacks_) {
      try {
        callback->on_exception(context_, what);
      } catch (const std::exception& error) {  // what others asked for is still to be saved
        log::warn("after the error: callbacks.{}: {}", callback->name, error.what());
      }
    }
    write();
    writer_.wait();
  } catch (const std::exception& error) {
    log::warn("after the error: {}", error.what());
  }
}

Trainer::Ending Trainer::own_ending() const {
  return {signal_received(), options_.max_seconds >= 0 && seconds() >= options_.max_seconds, stop_};
}

/// What any process asks for, all do, at the same edge of a step. Whether any wants to save.
bool Trainer::agree(bool saves) {
  if (processes_.is_alone()) return saves;
  constexpr std::size_t kCount = kEndSignals.size();
  const Ending own = own_ending();
  std::array<double, kCount + 3> all{};
  for (std::size_t s = 0; s < kCount; ++s) all[s] = own.signal == kEndSignals[s] ? 1 : 0;
  all[kCount] = own.is_late ? 1 : 0;
  all[kCount + 1] = own.is_asked ? 1 : 0;
  all[kCount + 2] = saves ? 1 : 0;
  const at::Tensor votes = at::tensor(all, at::kDouble);
  processes_.sum({votes});
  const double* sums = votes.const_data_ptr<double>();
  for (std::size_t s = 0; s < kCount && ending_.signal == 0; ++s) {
    if (sums[s] > 0) ending_.signal = kEndSignals[s];
  }
  ending_.is_late = sums[kCount] > 0;
  ending_.is_asked = sums[kCount + 1] > 0;
  return sums[kCount + 2] > 0;
}

int Trainer::signal() const {
  return processes_.is_alone() ? signal_received() : ending_.signal;
}

bool Trainer::should_stop() const {
  const Ending ending = processes_.is_alone() ? own_ending() : ending_;
  if (ending.signal != 0 || ending.is_late) return true;
  if (options_.max_steps >= 0 && state_.step >= options_.max_steps) return true;
  return ending.is_asked && state_.epoch >= options_.min_epochs &&
         state_.step >= options_.min_steps;
}

}  // namespace cytra::training
