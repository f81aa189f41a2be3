// TensorBoardLogger: an event file, as lightning.pytorch.loggers.TensorBoardLogger.
#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "base/files.h"
#include "config/registry.h"
#include "io/events/event_file.h"
#include "io/png/write.h"
#include "training/logger.h"

namespace cytra::training {
namespace {
using config::Node;
using config::Unused;

/// Collects options that may differ between runs and change a result: plain values by dotted key,
/// without the sections that say where files go.
void collect(const Node& node, const std::string& prefix, io::HyperParameters& found) {
  for (const auto& [key, value] : node.map) {
    if (prefix.empty() && (key == "paths" || key == "logger" || key == "callbacks")) continue;
    const std::string name = prefix + key;
    const bool is_nested = std::ranges::any_of(value.list, [](const Node& item) {
      return item.is_map() || item.kind == config::Kind::list;
    });
    if (value.is_map()) {
      collect(value, name + ".", found);
    } else if (!is_nested) {
      found[name] = value;
    }
  }
}

class TensorBoardLogger final : public Logger {
 public:
  struct Options {
    std::string save_dir = ".", prefix;
    std::optional<std::string> name = "tensorboard", version;
    void visit(auto& v) {
      v("save_dir", save_dir, "folder that holds the folder `name`");
      v("name", name, "folder of the event files; null: save_dir itself");
      v("version", version, "folder in it; a number N: version_N");
      v("prefix", prefix, "written before each metric, with a -");
      v("log_graph", Unused{{"false"}}, "there is no graph of the model");
      v("default_hp_metric", Unused{}, "HPARAMS shows the run's results");
      v("sub_dir", Unused{{"null"}}, "use version");
    }
  };
  explicit TensorBoardLogger(const Options& options)
      : folder_(options.save_dir), prefix_(options.prefix.empty() ? "" : options.prefix + "-") {
    const auto is_digit = [](unsigned char letter) { return std::isdigit(letter) != 0; };
    std::string version = options.version.value_or("");
    if (!version.empty() && std::ranges::all_of(version, is_digit)) version = "version_" + version;
    for (const std::string& part : {options.name.value_or(""), version}) {
      if (!part.empty()) folder_ += "/" + part;
    }
  }

  void open(const RunInfo& info) override {
    make_folders(folder_);
    step_ = info.step;
    file_.emplace(folder_, info.step == 0 ? 0 : info.step + 1);
    collect(info.config, "", parameters_);
    file_->add(io::session_start_summary(parameters_), step_);
    std::string table = "| | |\n|---|---|\n";
    for (const auto& [label, text] : info.environment)
      table += fmt::format("| {} | {} |\n", label, text);
    file_->add(io::text_summary("environment", table), step_);
    file_->add(io::text_summary("config", "```yaml\n" + config::to_yaml(info.config) + "```\n"),
               step_);
  }

  void log(const Metrics& metrics, int64_t epoch, int64_t step) override {
    Metrics scalars{{prefix_ + "epoch", static_cast<double>(epoch)}};
    for (const auto& [name, value] : metrics) scalars[prefix_ + name] = value;
    file_->add(io::scalar_summary(scalars), step);
    step_ = step;
  }
  void log_image(const std::string& name, const io::Image& image, int64_t step) override {
    file_->add(io::image_summary(prefix_ + name, io::encode_png(image)), step);
  }
  void log_histogram(const std::string& name, const io::Histogram& values, int64_t step) override {
    file_->add(io::histogram_summary(prefix_ + name, values), step);
  }
  void log_text(const std::string& name, const std::string& text, int64_t step) override {
    const bool is_table = text.find('\n') != std::string::npos;  // it is shown as Markdown
    file_->add(io::text_summary(name, is_table ? "```\n" + text + "\n```" : text), step);
  }

  void close(const Metrics& results) override {
    // HPARAMS looks its metrics up among the scalars; hp/ keeps the curves as they are.
    Metrics scalars;
    std::vector<std::string> names;
    for (const auto& [name, value] : results) {
      names.push_back("hp/" + prefix_ + name);
      scalars[names.back()] = value;
    }
    if (!results.empty()) {
      file_->add(io::scalar_summary(scalars), step_);
      file_->add(io::experiment_summary(parameters_, names), step_);
    }
    file_->add(io::session_end_summary(!results.empty()), step_);
  }

 private:
  std::string folder_, prefix_;
  std::optional<io::EventFile> file_;
  io::HyperParameters parameters_;
  int64_t step_ = 0;  // of the newest row
};
CYTRA_REGISTER(Logger, TensorBoardLogger, "TensorBoardLogger");

}  // namespace
}  // namespace cytra::training
