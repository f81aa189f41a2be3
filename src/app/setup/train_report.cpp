#include "app/setup/train_report.h"

#include <cmath>
#include <filesystem>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "app/run/entry.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/timers.h"
#include "base/version.h"
#include "config/overrides/overrides.h"
#include "config/run_config.h"
#include "data/datamodule.h"
#include "io/csv.h"
#include "io/reader.h"

namespace cytra::app {

namespace fs = std::filesystem;
using config::Node;

namespace {

constexpr const char* kAnyImages = "IMAGE_OR_FOLDER_OR_CSV";

bool has_table(const Node& data) {
  return data.get<std::string>("_target_", "").ends_with("DataframeDatamodule");
}

/// The input for `predict` of a training's images: their table, or their folder, or one image
/// where other images lie in its folder, too.
std::string own_images(const Node& data, const std::vector<data::Sample>& samples) {
  const fs::path path = data.get<std::string>("path", "");
  if (has_table(data)) {
    if (!folder_exists(path)) return path.string();
    for (const auto split : {data::Split::valid, data::Split::train}) {
      if (std::string table = data::table_of(path.string(), split); !table.empty()) return table;
    }
  }
  if (samples.empty() || !data.get<std::vector<std::string>>("source_keys", {}).empty())
    return kAnyImages;
  const std::string image = samples[0].id;
  const std::string folder = fs::path(image).parent_path().string();
  bool is_file = false, is_alone = io::file_of(image) == image && !folder.empty();
  for (const auto& [key, source] : samples[0].sources) {
    if (source.path == image) {
      is_file = true;
    } else if (fs::path(source.path).parent_path() == folder) {
      is_alone = is_alone && !io::is_image_path(source.path);
    }
  }
  return !is_file ? kAnyImages : is_alone ? folder : image;
}

/// The command that uses the trained model; `images`: own_images().
std::string next_command(const std::string& program,
                         const std::string& checkpoint,
                         const std::string& images) {
  if (program == "batch_segment") {
    return "segment:        " +
           command(program, {kAnyImages, "--detector", "DETECTOR_CKPT", "--segmenter", checkpoint});
  }
  return "predict:        " + command(program,
                                      {config::override_word("checkpoint.ckpt_path", checkpoint),
                                       config::override_word("data.path", images)});
}

/// Whether the source is a file that a cell of a table can name completely.
bool is_plain(const data::Source& source) {
  const io::Selection& part = source.selection;
  return !source.path.empty() && source.more.empty() && !source.has_level &&
         !source.time_is_channel && part.scene < 0 && part.timepoint < 0 && part.channels.empty() &&
         part.axes.empty();
}

/// Writes the images of a folder that nothing was learned from (the best checkpoint was chosen by
/// them) as a table that `predict` scores. Returns its path, or "" where a table can't name them.
std::string write_held_out(const Node& data,
                           const std::vector<data::Sample>& samples,
                           const std::string& folder) {
  if (samples.empty() || has_table(data)) return "";
  std::vector<std::string> columns = keys_of(samples[0].sources);
  for (const auto& [key, text] : samples[0].columns) columns.push_back(key);  // the class
  std::vector<std::vector<std::string>> rows;
  for (const data::Sample& sample : samples) {
    std::vector<std::string> row;
    for (const auto& [key, source] : sample.sources) {
      if (source.path.empty()) break;  // left out by data.on_error
      if (!is_plain(source)) return "";
      if (!data::is_there(source.path)) {  // of an image without objects, YOLO has no file
        row.push_back(folder + "/no_objects.txt");
        write_file(row.back(), "");
        continue;
      }
      row.push_back(fs::absolute(source.path).lexically_normal().string());
    }
    for (const auto& [key, text] : samples[0].columns) {
      const auto own = sample.columns.find(key);
      row.push_back(own == sample.columns.end() ? "" : own->second);
    }
    if (row.size() == columns.size()) rows.push_back(std::move(row));
  }
  if (columns.size() < 2 || rows.empty()) return "";
  std::string path = folder + "/held_out.csv";
  io::write_table(path, columns, rows);
  return path;
}

/// The command line with which the training goes on: one that has all of its steps or epochs takes
/// as many again.
std::string to_go_on(const cli::Run& run,
                     const TrainConfig& config,
                     const training::TrainState& state,
                     const std::string& last) {
  std::vector<std::string> added;
  if (config.trainer.max_steps > 0 && state.step >= config.trainer.max_steps)
    added.push_back(fmt::format("trainer.max_steps={}", 2 * config.trainer.max_steps));
  if (config.trainer.max_epochs > 0 && state.epoch >= config.trainer.max_epochs)
    added.push_back(fmt::format("trainer.max_epochs={}", 2 * config.trainer.max_epochs));
  added.push_back(config::override_word("checkpoint.ckpt_path", last));
  if (config.checkpoint.weights_only.value_or(false))
    added.emplace_back("checkpoint.weights_only=false");
  std::string line = run.command_line + " ";
  for (const std::string& one : added) {
    const std::string key = one.substr(0, one.find('=') + 1);
    for (const std::string& word : run.overrides) {
      const std::string typed = " " + shell_quote(word) + " ";
      const std::size_t at = word.starts_with(key) ? line.find(typed) : std::string::npos;
      if (at != std::string::npos) line.erase(at, typed.size() - 1);
    }
    line += shell_quote(one) + " ";
  }
  return trim(line);
}

std::string best_metric(const training::TrainState& state) {
  return state.best_metric.empty() ? "step" : state.best_metric;
}

}  // namespace

training::Metrics results_of(const training::TrainState& state) {
  training::Metrics results = state.metrics;
  if (!state.best_path.empty()) results["best/" + best_metric(state)] = state.best_score;
  return results;
}

void open_loggers(const Loggers& loggers,
                  const cli::Run& run,
                  const std::string& folder,
                  int64_t step,
                  const std::string& device) {
  const training::RunInfo info{folder,
                               config::keep_environment(run.config, run.composed),
                               step,
                               {{"command", run.command_line},
                                {"folder", folder},
                                {"cytra", version()},
                                {"device", device},
                                {"threads", std::to_string(at::get_num_threads())}}};
  for (const auto& logger : loggers) logger->open(info);
}

void close_loggers(const Loggers& loggers,
                   const training::TrainState& state,
                   const training::Metrics& results,
                   const std::string& outcome) {
  for (const auto& logger : loggers) {
    logger->log_text("outcome", outcome, state.step);
    if (timers::are_on()) logger->log_text(timers::kTextName, timers::table(), state.step);
    if (!state.best_path.empty()) logger->log_text("best checkpoint", state.best_path, state.step);
    logger->close(results);
  }
}

void report(const cli::Run& run,
            const TrainConfig& config,
            const training::Task& task,
            const training::TrainState& state,
            const training::Metrics& tested,
            const std::vector<data::Sample>& images,
            bool are_held_out,
            const std::string& folder,
            double seconds) {
  const std::string last = folder + "/checkpoints/last.ckpt";
  const std::string best = state.best_path.empty() ? last : state.best_path;
  const bool has_checkpoint = std::filesystem::exists(last) || std::filesystem::exists(best);
  cli::Results results(run.json);
  if (!state.best_path.empty()) {
    results.add("best_metric", best_metric(state));
    results.add("best_score", state.best_score);
    if (!state.best_mode.empty()) results.add("best_mode", state.best_mode);
    results.add("best_checkpoint", state.best_path);
  }
  if (std::filesystem::exists(last)) results.add("last_checkpoint", last);
  for (const auto& [name, value] : state.metrics) {  // of the last validation
    if (name.starts_with("val/")) results.add(name, value);
  }
  for (const auto& [name, value] : tested) results.add(name, value);
  results.add("steps", Node::make_integer(state.step));
  results.add("seconds", std::round(seconds * 1e3) / 1e3);
  results.add("output_dir", folder);
  log::info("done in {}: {} steps{}",
            format_seconds(seconds),
            state.step,
            state.best_path.empty()
                ? ""
                : fmt::format(", best {} {:.4f}", best_metric(state), state.best_score));
  if (has_checkpoint) {
    log::info("go on with it:  {}", to_go_on(run, config, state, last));
    log::info("{}", next_command(task.program(), best, own_images(config.data, images)));
    try {
      const std::string table =
          are_held_out && task.is_scored() ? write_held_out(config.data, images, folder) : "";
      if (!table.empty())
        log::info("score images:   {}",
                  command("predict",
                          {config::override_word("checkpoint.ckpt_path", best),
                           config::override_word("data.path", table),
                           "data.with_target=true"}));
    } catch (const Error& error) {  // the training is complete without it
      log::warn("held_out.csv: {}", error.what());
    }
  }
  results.print();
}

}  // namespace cytra::app
