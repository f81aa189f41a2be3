// TQDMProgressBar, RichProgressBar: how the trainer's progress is shown; the bar itself is
// base/progress.h. Source: the classes of these names in lightning.pytorch.callbacks.
#include "base/progress.h"
#include "config/registry.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using config::Unused;

class ProgressBar final : public Callback {
 public:
  struct Options : ProgressStyle {
    void visit(auto& v) {
      v("refresh_rate", refresh_rate, "steps between two drawings; 0: no progress", 0, 1e9);
      v("leave", leave, "the finished bar stays on the terminal");
      v("line_interval_s",
        line_interval_s,
        "seconds between two lines where there is no terminal",
        0.1,
        1e6);
      v("process_position", Unused{{"0"}}, "there is one line");
      v("theme", Unused{}, "of rich");
      v("console_kwargs", Unused{}, "of rich");
    }
  };
  explicit ProgressBar(const Options& options) : style_(options) {}
  void attach(Task&) override { progress_style() = style_; }

 private:
  ProgressStyle style_;
};
CYTRA_REGISTER(Callback, ProgressBar, "TQDMProgressBar", "RichProgressBar");

}  // namespace
}  // namespace cytra::training
