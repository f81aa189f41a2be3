// TimerLogger: how long the named scopes of a training take (base/timers.h). While it is active,
// every logger gets their statistics; at the end of the run it logs them as a table.
#include "base/log.h"
#include "base/timers.h"
#include "config/registry.h"
#include "training/logger.h"

namespace cytra::training {
namespace {

class TimerLogger final : public Logger {
 public:
  struct Options {
    void visit(auto&) {}
  };
  explicit TimerLogger(const Options&) {}

  void open(const RunInfo&) override {
    timers::clear();
    timers::enable();
  }
  void log(const Metrics&, int64_t, int64_t) override {}
  void log_text(const std::string& name, const std::string& text, int64_t) override {
    if (name == timers::kTextName) log::info("times of scopes:\n{}", text);
  }
};
CYTRA_REGISTER(Logger, TimerLogger, "TimerLogger");

}  // namespace
}  // namespace cytra::training
