// PrometheusLogger: the newest value of each metric as a text file, which node_exporter's textfile
// collector gives to Prometheus.
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/prometheus_text.h"
#include "config/registry.h"
#include "training/logger.h"

namespace cytra::training {
namespace {

/// cytra_train_loss_step of train/loss_step.
std::string prometheus_name(const std::string& metric) {
  std::string name = "cytra_" + metric;
  for (char& letter : name) {
    const bool is_taken = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9');
    if (!is_taken) letter = '_';
  }
  return name;
}

class PrometheusLogger final : public Logger {
 public:
  struct Options {
    std::string save_dir = ".", filename = "metrics.prom";
    void visit(auto& v) {
      v("save_dir", save_dir, "folder that gets the file: node_exporter's, or the run's");
      v("filename",
        filename,
        "file name, ending with .prom; runs that share a folder at the same time each need their "
        "own");
    }
  };
  explicit PrometheusLogger(const Options& options)
      : folder_(options.save_dir), path_(options.save_dir + "/" + options.filename) {}

  void open(const RunInfo& info) override {
    make_folders(folder_);
    const auto name = [&](const char* key) { return info.config.get<std::string>(key, ""); };
    labels_ = {{"experiment", name("experiment_name")}, {"run", info.folder}};
    const config::Node* const batch = info.config.find("data.batch_size");
    if (batch != nullptr && batch->kind == config::Kind::integer) batch_size_ = batch->as<double>();
    newest_ = {{"step", static_cast<double>(info.step)}};
    write_file(path_, text());
  }

  void log(const Metrics& metrics, int64_t epoch, int64_t step) override {
    for (const auto& [name, value] : metrics) newest_[name] = value;
    newest_["epoch"] = static_cast<double>(epoch);
    newest_["step"] = static_cast<double>(step);
    const auto data = metrics.find("data_time"), work = metrics.find("step_time");
    if (batch_size_ > 0 && data != metrics.end() && work != metrics.end())
      newest_["images_per_second"] = batch_size_ / (data->second + work->second);
    write();
  }

  void close(const Metrics& results) override {
    for (const auto& [name, value] : results) newest_[name] = value;
    write();
  }

 private:
  std::string text() const {
    std::map<std::string, double> values;  // of two metrics with one name, one
    for (const auto& [metric, value] : newest_) values[prometheus_name(metric)] = value;
    PrometheusText text;
    for (const auto& [name, value] : values) text.metric(name, "", "gauge").sample(value, labels_);
    return text.text();
  }
  void write() {
    try {
      write_file(path_, text());
    } catch (const Error& error) {
      if (!is_told_) log::warn("{}", error.what());
      is_told_ = true;
    }
  }
  const std::string folder_, path_;
  PrometheusText::Labels labels_;
  double batch_size_ = 0;  // 0: not known
  Metrics newest_;
  bool is_told_ = false;
};
CYTRA_REGISTER(Logger, PrometheusLogger, "PrometheusLogger");

}  // namespace
}  // namespace cytra::training
