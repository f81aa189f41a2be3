// CSVLogger: csv/version_0/metrics.csv, a row per logging, as lightning.pytorch.loggers.CSVLogger.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/append_file.h"
#include "base/files.h"
#include "base/strings.h"
#include "config/registry.h"
#include "training/logger.h"

namespace cytra::training {
namespace {

class CsvLogger final : public Logger {
 public:
  struct Options {
    std::string save_dir = ".";
    void visit(auto& v) {
      v("save_dir", save_dir, "folder that gets csv/version_0/metrics.csv");
      v("name", config::Unused{{"csv", "csv/"}}, "the folder is called csv");
      v("version", config::Unused{{"0"}}, "the folder is called version_0");
      v("prefix", config::Unused{{""}}, "metrics keep their names");
      v("flush_logs_every_n_steps", config::Unused{}, "every row is written at once");
    }
  };
  explicit CsvLogger(const Options& options) : folder_(options.save_dir + "/csv/version_0") {}

  void open(const RunInfo& info) override {
    make_folders(folder_);
    file_.emplace(folder_ + "/metrics.csv");
    bool is_header = true;
    file_->rewrite("", [&](std::string& line) {
      if (info.step == 0) return false;  // of another run
      const std::vector<std::string> cells = split(line, ',');
      if (std::exchange(is_header, false)) {
        columns_.assign(
            cells.begin() + static_cast<std::ptrdiff_t>(std::min(cells.size(), std::size_t{2})),
            cells.end());
        return true;
      }
      return cells.size() > 2 && std::atoll(cells[1].c_str()) <= info.step;
    });
  }

  void log(const Metrics& metrics, int64_t epoch, int64_t step) override {
    std::vector<std::string> columns = columns_;
    for (const auto& [name, value] : metrics) {
      if (!contains(columns, name)) columns.push_back(name);
    }
    if (columns.size() > columns_.size()) grow(std::move(columns));
    std::string line = fmt::format("{},{}", epoch, step);
    for (const std::string& column : columns_) {
      const auto value = metrics.find(column);
      line += value == metrics.end() ? "," : fmt::format(",{:.9g}", value->second);
    }
    file_->append(line + "\n");
  }

 private:
  void grow(std::vector<std::string> columns) {
    bool is_header = !columns_.empty();
    const std::string more(columns.size() - columns_.size(), ',');
    const auto widen = [&](std::string& line) {
      line += more;
      return !std::exchange(is_header, false);
    };
    if (file_->rewrite("epoch,step," + join(columns, ",") + "\n", widen))
      columns_ = std::move(columns);
  }
  std::string folder_;
  std::optional<AppendFile> file_;
  std::vector<std::string> columns_;  // after epoch and step, as in the file
};
CYTRA_REGISTER(Logger, CsvLogger, "CSVLogger");

}  // namespace
}  // namespace cytra::training
