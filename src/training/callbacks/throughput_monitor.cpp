// ThroughputMonitor: batches and images per second of training. Source:
// lightning.pytorch.callbacks.ThroughputMonitor and lightning.fabric's Throughput.
#include <deque>

#include "base/stopwatch.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using config::Unused;

class ThroughputMonitor final : public Callback {
 public:
  struct Options {
    int64_t window_size = 100;
    void visit(auto& v) {
      v("window_size", window_size, "steps over which a rate is the mean", 2, 1e6);
      v("batch_size_fn", Unused{}, "the loader knows how many images a batch has");
      v("length_fn", Unused{}, "of texts");
      v("separator", Unused{{"/"}}, "in the names");
    }
  };
  explicit ThroughputMonitor(const Options& options) : options_(options) {}

  void on_fit_start(Context&) override { stopwatch_ = {}; }
  void on_batch_start(Context& context) override {
    now_.batches += 1;
    now_.images += static_cast<double>(context.batch->ids.size());
  }
  void on_step_end(Context& context) override {
    now_.seconds = stopwatch_.seconds() - away_s_;
    if (std::ssize(window_) == options_.window_size) window_.pop_front();
    window_.push_back(now_);
    if (context.is_logged_step()) log(context);
  }
  // Validations do not count.
  void on_validation_start(Context&) override { left_ = {}; }
  void on_validation_end(Context&) override { away_s_ += left_.seconds(); }

 private:
  struct Sums {
    double seconds = 0, batches = 0, images = 0;
  };
  void log(Context& context) const {
    Metrics metrics{{"train/time", now_.seconds},
                    {"train/batches", now_.batches},
                    {"train/samples", now_.images}};
    const Sums& first = window_.front();
    const double seconds = now_.seconds - first.seconds;
    if (std::ssize(window_) == options_.window_size && seconds > 0) {
      metrics["train/device/batches_per_sec"] = (now_.batches - first.batches) / seconds;
      metrics["train/device/samples_per_sec"] = (now_.images - first.images) / seconds;
    }
    context.log_only(metrics);
  }
  Options options_;
  Sums now_;
  std::deque<Sums> window_;
  Stopwatch stopwatch_, left_;
  double away_s_ = 0;
};
CYTRA_REGISTER(Callback, ThroughputMonitor, "ThroughputMonitor");

}  // namespace
}  // namespace cytra::training
