// SequentialLR: one schedule after the other. Source: torch.optim.lr_scheduler.SequentialLR.
#include <algorithm>

#include "base/error.h"
#include "config/registry.h"
#include "training/scheduler.h"

namespace cytra::training {
namespace {

/// Each schedule counts from its own beginning, in the interval of this one (its own interval is
/// not used), and takes its part for the whole training.
class SequentialLR final : public Schedule {
 public:
  struct Options : ScheduleOptions {
    config::Node schedulers;
    std::vector<int64_t> milestones;
    void visit(auto& v) {
      v("schedulers", schedulers, "one after the other", config::list_of<Scheduler>());
      v("milestones", milestones, "steps at which the next one takes over", 0, 1e12);
      ScheduleOptions::visit(v);
    }
    void check() const {
      if (schedulers.list.size() != milestones.size() + 1)
        throw ConfigError("milestones: expected one less than schedulers");
      if (!std::ranges::is_sorted(milestones))
        throw ConfigError("milestones: expected rising numbers");
    }
  };
  explicit SequentialLR(const Options& options)
      : Schedule(options), milestones_(options.milestones) {
    for (const config::Node& node : options.schedulers.list) {
      schedulers_.push_back(std::dynamic_pointer_cast<Schedule>(make<Scheduler>(node)));
      if (!schedulers_.back())
        throw ConfigError("scheduler.schedulers: ReduceLROnPlateau can't be one of several");
    }
  }

  Rates value(double base_lr, int64_t index, int64_t total) const override {
    const auto next = std::ranges::upper_bound(milestones_, index);
    const int64_t begin = next == milestones_.begin() ? 0 : *(next - 1);
    const int64_t end = next == milestones_.end() ? total : *next;
    const int64_t step = index - begin, span = end < 0 ? -1 : std::max<int64_t>(1, end - begin);
    return schedulers_[static_cast<std::size_t>(next - milestones_.begin())]->at(
        base_lr, {step, span, step, span});
  }

 private:
  std::vector<std::shared_ptr<Schedule>> schedulers_;
  std::vector<int64_t> milestones_;
};
CYTRA_REGISTER(Scheduler, SequentialLR, "SequentialLR");

}  // namespace
}  // namespace cytra::training
