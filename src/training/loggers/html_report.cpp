// HTMLReport: report.html, the whole run on one page (report/run_page.h).
#include <fstream>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "config/registry.h"
#include "io/png/write.h"
#include "report/run_page.h"
#include "training/class_in_metric.h"
#include "training/logger.h"

namespace cytra::training {
namespace {

constexpr std::size_t kMostImages = 48, kMostWarnings = 50;
constexpr double kBetweenReports = 10;  // seconds, while the training runs

class HtmlReport final : public Logger {
 public:
  struct Options {
    std::string save_dir = ".";
    void visit(auto& v) {
      v("save_dir", save_dir, "folder that gets report.html, every 10 s and when the run ends");
    }
  };
  explicit HtmlReport(const Options& options) : folder_(options.save_dir) {}

  void open(const RunInfo& info) override {
    make_folders(folder_);
    run_log_ = info.folder + "/train.log";
    page_.config = config::to_yaml(info.config);
    take_classes(info.config);
    page_.title = join({info.config.get<std::string>("experiment_name", "training"),
                        info.config.get<std::string>("run_name", "run")},
                       " / ");
    page_.environment = info.environment;
    page_.monitor = info.config.get<std::string>("best.monitor", "val/loss");
    page_.is_higher_better = info.config.get<std::string>("best.mode", "min") == "max";
    page_.first_step = page_.step = timed_ = info.step;
    stopwatch_ = written_ = {};
  }

  void log(const Metrics& metrics, int64_t epoch, int64_t step) override {
    const bool has_times = metrics.count("data_time") != 0;
    const auto steps = static_cast<double>(has_times ? step - std::exchange(timed_, step) : 0);
    for (const auto& [name, value] : metrics) {
      if (name.starts_with("timer/")) continue;  // their table comes as a text
      page_.curves[name].add(static_cast<double>(step), value);
      if (name == "data_time") page_.waited += value * steps;
      if (name == "step_time") page_.computed += value * steps;
    }
    page_.epoch = epoch + 1;
    page_.step = step;
    if (written_.seconds() >= kBetweenReports) report_so_far();
  }
  void log_caption(const std::string& name, const std::string& caption) override {
    page_.captions[name] = caption;
  }
  void log_image(const std::string& name, const io::Image& image, int64_t step) override {
    if (page_.images.size() < kMostImages || page_.images.count(name) != 0)
      page_.images[name] = {io::encode_png(image), step};
  }
  void log_findings(const report::Findings& findings, int64_t) override {
    page_.findings = findings;
  }
  void log_text(const std::string& name, const std::string& text, int64_t) override {
    page_.texts[name] = text;
  }

  void close(const Metrics& results) override {
    try {
      write(results);
    } catch (const Error& error) {
      log::warn("{}", error.what());
    }
  }

 private:
  void write(const Metrics& results) {
    page_.warnings = warnings();
    page_.seconds = stopwatch_.seconds();
    write_file(folder_ + "/report.html", page_.html(results));
  }
  void report_so_far() {
    page_.texts["outcome"] = "running";
    try {
      write({});
    } catch (const Error&) {  // close() says what is wrong with the disk
    }
    page_.texts.erase("outcome");
    written_ = {};
  }
  /// The names that a task, or its heads, has for its classes.
  void take_classes(const config::Node& config) {
    const auto take = [&](const config::Node* task) {
      const config::Node* names = task == nullptr ? nullptr : task->find_direct("class_names");
      if (names == nullptr || names->list.empty()) return;
      std::vector<std::string> own;
      for (const config::Node& name : names->list) own.push_back(name.as<std::string>());
      if (page_.legend.empty()) page_.legend = own;
      for (std::string& name : own) page_.classes.push_back(metric_name(name));
    };
    const config::Node* task = config.find("task");
    take(task);
    const config::Node* heads = task == nullptr ? nullptr : task->find_direct("heads");
    if (heads == nullptr) return;
    for (const auto& [name, head] : heads->map) take(&head);
  }

  /// The warnings in the run's log file, each once.
  std::vector<std::string> warnings() const {
    std::ifstream file(run_log_);
    std::set<std::string> seen;
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line) && all.size() < kMostWarnings;) {
      const std::size_t mark = line.find(" warning: ");
      if (mark != 19) continue;  // after the time
      const std::string text = line.substr(mark + 10);
      if (seen.insert(text).second) all.push_back(text);
    }
    return all;
  }

  std::string folder_, run_log_;
  report::RunPage page_;
  int64_t timed_ = 0;  // step of the newest data_time
  Stopwatch stopwatch_, written_;
};
CYTRA_REGISTER(Logger, HtmlReport, "HTMLReport");

}  // namespace
}  // namespace cytra::training
