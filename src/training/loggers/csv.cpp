// CSVLogger: csv/version_0/metrics.csv, a row per logging, as lightning.pytorch.loggers.CSVLogger.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/files.h"
#include "base/strings.h"
#include "config/registry.h"
#include "training/callback.h"

namespace cytra::training {
namespace {

class CsvLogger final : public Logger {
 public:
  struct Options {
    std::string save_dir = ".";
    template <class V>
    void visit(V& v) {
      v("save_dir", save_dir, "folder that gets csv/version_0/metrics.csv");
      v("name", config::Unused{{"csv", "csv/"}}, "the folder is called csv");
      v("version", config::Unused{{"0"}}, "the folder is called version_0");
      v("prefix", config::Unused{{""}}, "metrics keep their names");
    }
  };
  explicit CsvLogger(const Options& options)
      : path_(options.save_dir + "/csv/version_0/metrics.csv") {
    make_folders(options.save_dir + "/csv/version_0");
  }

  void log(const Metrics& metrics, int64_t epoch, int64_t step) override {
    bool known = !rows_.empty();
    for (const auto& [name, value] : metrics) {
      if (std::find(columns_.begin(), columns_.end(), name) != columns_.end()) continue;
      columns_.push_back(name);
      known = false;
    }
    rows_.push_back({epoch, step, metrics});
    if (known) {
      append(line(rows_.back()));
    } else {  // a new column: the whole file again
      std::string text = "epoch,step," + join(columns_, ",") + "\n";
      for (const Row& row : rows_) text += line(row);
      write_file(path_, text);
    }
  }

 private:
  struct Row {
    int64_t epoch, step;
    Metrics metrics;
  };
  std::string line(const Row& row) const {
    std::string text = fmt::format("{},{}", row.epoch, row.step);
    for (const std::string& column : columns_) {
      const auto value = row.metrics.find(column);
      text += value == row.metrics.end() ? "," : fmt::format(",{:.9g}", value->second);
    }
    return text + "\n";
  }
  void append(const std::string& text) const {
    std::FILE* file = std::fopen(path_.c_str(), "ae");
    if (file == nullptr) return;
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  std::string path_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};
CYTRA_REGISTER(Logger, CsvLogger, "CSVLogger");

}  // namespace
}  // namespace cytra::training
