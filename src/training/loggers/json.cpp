// JSONLogger: metrics.jsonl, an object per logging, for programs to follow: `tail -f`, jq, pandas.
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/append_file.h"
#include "base/files.h"
#include "config/registry.h"
#include "training/logger.h"

namespace cytra::training {
namespace {

class JsonLogger final : public Logger {
 public:
  struct Options {
    std::string save_dir = ".";
    void visit(auto& v) { v("save_dir", save_dir, "folder that gets metrics.jsonl"); }
  };
  explicit JsonLogger(const Options& options) : folder_(options.save_dir) {}

  void open(const RunInfo& info) override {
    make_folders(folder_);
    file_.emplace(folder_ + "/metrics.jsonl");
    file_->rewrite("", [&](const std::string& line) {
      long long epoch = 0, step = 0;
      return info.step > 0 &&
             std::sscanf(line.c_str(), R"({"epoch":%lld,"step":%lld)", &epoch, &step) == 2 &&
             step <= info.step;
    });
  }

  void log(const Metrics& metrics, int64_t epoch, int64_t step) override {
    const std::chrono::duration<double> time = std::chrono::system_clock::now().time_since_epoch();
    std::string line =
        fmt::format(R"({{"epoch":{},"step":{},"time":{:.3f})", epoch, step, time.count());
    for (const auto& [name, value] : metrics) {
      line += "," + config::to_json(config::Node::make_string(name)) + ":";
      line += std::isfinite(value) ? fmt::format("{:.9g}", value) : "null";  // JSON has no NaN
    }
    file_->append(line + "}\n");
  }

 private:
  std::string folder_;
  std::optional<AppendFile> file_;
};
CYTRA_REGISTER(Logger, JsonLogger, "JSONLogger");

}  // namespace
}  // namespace cytra::training
