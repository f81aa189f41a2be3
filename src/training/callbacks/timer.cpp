// Timer: ends a training after a time, which includes the time before a resume. Source:
// lightning.pytorch.callbacks.Timer.

#include "base/log.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "config/registry.h"
#include "training/callback.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {
using config::Node;

class Timer final : public Callback {
 public:
  struct Options {
    Node duration;
    std::string interval = "step";
    bool verbose = true;
    double limit_s = -1;  // of `duration`; < 0: none
    void visit(auto& v) {
      v("duration", duration, "DD:HH:MM:SS, or days, hours, minutes, seconds; null: no limit");
      v("interval", interval, "where the training may end", {"step", "epoch"});
      v("verbose", verbose, "write a message when the time is over");
    }
    void check() {
      if (!duration.is_null()) limit_s = duration_s(duration);
    }
  };
  explicit Timer(const Options& options) : options_(options) {}

  void on_fit_start(Context& context) override {
    stopwatch_ = {};
    look(context);  // the time of a checkpoint may be over already
  }
  void on_step_end(Context& context) override {
    if (options_.interval == "step") look(context);
  }
  void on_epoch_end(Context& context) override {
    if (options_.interval == "epoch") look(context);
  }

  Node state() const override {
    Node state = Node::make_map();
    state.set("seconds", Node::make_real(elapsed_s()));
    return state;
  }
  void load(const Node& state) override { before_s_ = state.get<double>("seconds"); }

 private:
  double elapsed_s() const { return before_s_ + stopwatch_.seconds(); }
  void look(Context& context) {
    if (options_.limit_s < 0 || elapsed_s() < options_.limit_s) return;
    context.stop = true;
    if (options_.verbose && !std::exchange(is_over_, true))
      log::info("callbacks.{}: the time of {} is over", name, format_seconds(options_.limit_s));
  }
  Options options_;
  double before_s_ = 0;
  bool is_over_ = false;
  Stopwatch stopwatch_;
};
CYTRA_REGISTER(Callback, Timer, "Timer");

}  // namespace
}  // namespace cytra::training
