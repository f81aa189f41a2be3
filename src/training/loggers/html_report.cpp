// HTMLReport: report.html, the whole run on one page that needs no other file and no network.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "config/registry.h"
#include "io/objects/palette.h"
#include "io/png/write.h"
#include "training/class_in_metric.h"
#include "training/logger.h"
#include "training/loggers/html_plot.h"
#include "training/loggers/html_style.h"

namespace cytra::training {
namespace {

constexpr std::size_t kMostImages = 48, kMostWarnings = 50;

std::string base64(const std::string& bytes) {
  constexpr const char* kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (std::size_t k = i; k < i + 3; ++k)
      three = three << 8 | (k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kLetters[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// "dice/seg" of "dice_class_1/seg", and of "dice_tumor/seg" where a class has that name: beside
/// the mean of all.
std::string without_class(const std::string& metric, const std::vector<std::string>& classes) {
  const std::string base = metric.substr(0, metric.find('/')), head = metric.substr(base.size());
  const std::size_t numbered = base.find("_class_");
  if (numbered != std::string::npos) return base.substr(0, numbered) + head;
  for (const std::string& name : classes) {
    if (ends_with(base, "_" + name)) return base.substr(0, base.size() - name.size() - 1) + head;
  }
  return metric;
}

/// Metrics of one plot: "loss" of train/loss_step and val/loss, "dice" of val/dice_class_1.
std::string topic_of(const std::string& name, const std::vector<std::string>& classes) {
  if (ends_with(name, "_time")) return "seconds per batch";
  std::string topic = name;
  for (const char* stage : {"train/", "val/", "test/"}) {
    if (starts_with(topic, stage))
      topic = without_class(topic.substr(std::string_view(stage).size()), classes);
  }
  for (const std::string_view ending : {"_step", "_epoch"}) {
    if (ends_with(topic, ending)) topic.resize(topic.size() - ending.size());
  }
  const bool is_other = ends_with(topic, "-momentum") || ends_with(topic, "-weight_decay");
  if (topic == "lr" || (starts_with(topic, "lr-") && !is_other)) return "learning rate";
  if (starts_with(topic, "grad_2.0_norm")) return "norms of gradients";
  return topic;
}

/// Losses first, then what is measured, then the settings.
int rank_of(const std::string& topic) {
  if (topic == "seconds per batch") return 3;
  if (topic == "learning rate") return 2;
  return topic.find("loss") == std::string::npos ? 1 : 0;
}

std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.5g}", value) : fmt::format("{}", value);
}

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : "<h2>" + title + "</h2>\n" + body + "\n";
}

std::string row(const std::string& label, const std::string& text) {
  std::string cell = escaped_html(text);
  if (text.find('\n') != std::string::npos) cell = "<pre>" + cell + "</pre>";  // a table
  return "<tr><th>" + escaped_html(label) + "</th><td>" + cell + "</td></tr>\n";
}

std::string tile(const std::string& label, const std::string& text) {
  return fmt::format("<div class=card><small>{}</small><b>{}</b></div>\n",
                     escaped_html(label),
                     escaped_html(text));
}

class HtmlReport final : public Logger {
 public:
  struct Options {
    std::string save_dir = ".";
    template <class V>
    void visit(V& v) {
      v("save_dir", save_dir, "folder that gets report.html when the run ends");
    }
  };
  explicit HtmlReport(const Options& options) : folder_(options.save_dir) {}

  void open(const RunInfo& info) override {
    make_folders(folder_);
    run_log_ = info.folder + "/train.log";
    config_ = config::to_yaml(info.config);
    take_classes(info.config);
    title_ = join({info.config.get<std::string>("experiment_name", "training"),
                   info.config.get<std::string>("run_name", "run")},
                  " / ");
    environment_ = info.environment;
    first_step_ = step_ = timed_ = info.step;
    stopwatch_ = {};
  }

  void log(const Metrics& metrics, int64_t epoch, int64_t step) override {
    const bool has_times = metrics.count("data_time") != 0;
    const auto steps = static_cast<double>(has_times ? step - std::exchange(timed_, step) : 0);
    for (const auto& [name, value] : metrics) {
      if (starts_with(name, "timer/")) continue;  // their table comes as a text
      curves_[name].add(static_cast<double>(step), value);
      if (name == "data_time") waited_ += value * steps;
      if (name == "step_time") computed_ += value * steps;
    }
    epoch_ = epoch;
    step_ = step;
  }
  void log_caption(const std::string& name, const std::string& caption) override {
    captions_[name] = caption;
  }
  void log_image(const std::string& name, const io::Image& image, int64_t step) override {
    if (images_.size() < kMostImages || images_.count(name) != 0)
      images_[name] = {io::encode_png(image), step};
  }
  void log_text(const std::string& name, const std::string& text, int64_t) override {
    texts_[name] = text;
  }

  void close(const Metrics& results) override {
    try {
      write_file(folder_ + "/report.html", page(results));
    } catch (const Error& error) {
      log::warn("{}", error.what());
    }
  }

 private:
  /// The names that a task, or its heads, has for its classes.
  void take_classes(const config::Node& config) {
    const auto take = [&](const config::Node* task) {
      const config::Node* names = task == nullptr ? nullptr : task->find_direct("class_names");
      if (names == nullptr || names->list.empty()) return;
      std::vector<std::string> own;
      for (const config::Node& name : names->list) own.push_back(name.as<std::string>());
      if (legend_.empty()) legend_ = own;
      for (std::string& name : own) classes_.push_back(metric_name(name));
    };
    const config::Node* task = config.find("task");
    take(task);
    const config::Node* heads = task == nullptr ? nullptr : task->find_direct("heads");
    if (heads == nullptr) return;
    for (const auto& [name, head] : heads->map) take(&head);
  }

  std::string page(const Metrics& results) const {
    const auto outcome = texts_.find("outcome");
    const std::string ended = outcome == texts_.end() ? "ended" : outcome->second;
    std::string html =
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
        "<title>" +
        escaped_html(title_) + "</title><style>" + kReportStyle + "</style></head><body>\n";
    html += fmt::format(
        "<header><h1>{}</h1><span class=\"badge{}\">{}</span><span class=soft>{}</span></header>\n",
        escaped_html(title_),
        ended == "finished" ? "" : " bad",
        escaped_html(ended),
        format_time("%Y-%m-%d %H:%M"));
    html += tiles(results) + section("Curves", plots()) + section("Images", images());
    html += section("Metrics", metrics_table()) + section("Time", times());
    html += section("Warnings", warnings()) + section("Run", run_table());
    html += section("Configuration",
                    "<details class=card><summary>Every value of this run</summary><pre>" +
                        escaped_html(config_) + "</pre></details>");
    return html + "<script>" + kReportScript + "</script></body></html>\n";
  }

  std::string tiles(const Metrics& results) const {
    std::string html = "<div class=tiles>\n";
    for (const auto& [name, value] : results) {
      if (starts_with(name, "best/")) html += tile("best " + name.substr(5), number_text(value));
    }
    for (const auto& [name, curve] : curves_) {
      if (starts_with(name, "val/")) html += tile("last " + name, number_text(curve.last()));
      if (starts_with(name, "test/")) html += tile(name, number_text(curve.last()));
    }
    html += tile("epochs", std::to_string(epoch_));
    html += tile("steps", std::to_string(step_));
    return html + tile("time", format_seconds(stopwatch_.seconds())) + "</div>\n";
  }

  std::string plots() const {
    using Lines = std::vector<std::pair<std::string, const Curve*>>;
    std::map<std::pair<int, std::string>, Lines> topics;
    for (const auto& [name, curve] : curves_) {
      const std::string topic = topic_of(name, classes_);
      topics[{rank_of(topic), topic}].emplace_back(name, &curve);
    }
    std::string html;
    for (const auto& [key, lines] : topics) {
      const std::string svg =
          plot_svg(lines, static_cast<double>(first_step_), static_cast<double>(step_));
      if (svg.empty()) continue;
      html += "<div class=\"card plot\"><h3>" + escaped_html(key.second) + "</h3>";
      int place = 0;
      for (const auto& [name, curve] : lines) {
        html += fmt::format("<span class=\"key c{}\"><i></i>{}</span>",
                            colour_of(name, place++),
                            escaped_html(name));
      }
      html += "<div class=tip></div>" + svg + "</div>\n";
    }
    return html.empty() ? "" : "<div class=grid2>\n" + html + "</div>";
  }

  std::string images() const {
    std::string html;
    for (const auto& [name, image] : images_) {
      const auto caption = captions_.find(name);
      html += fmt::format(
          "<figure><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"><figcaption>{0}, step "
          "{2}{3}</figcaption></figure>\n",
          escaped_html(name),
          base64(image.png),
          image.step,
          caption == captions_.end() ? "" : "<br>" + escaped_html(caption->second));
    }
    if (html.empty()) return "";
    return legend() + "<div class=images>\n" + html + "</div>";
  }

  /// The colours of the classes in the pictures.
  std::string legend() const {
    constexpr std::size_t kColours = 7;  // as draw_panel() repeats them
    std::string html;
    for (std::size_t k = 0; k < legend_.size(); ++k) {
      const auto colour = io::label_colour(static_cast<int64_t>(k % kColours) + 1);
      html +=
          fmt::format("<span class=key><i style=\"background:#{:02x}{:02x}{:02x}\"></i>{}</span>",
                      colour[0],
                      colour[1],
                      colour[2],
                      escaped_html(legend_[k]));
    }
    return html.empty() ? "" : "<p>" + html + "</p>\n";
  }

  std::string metrics_table() const {
    std::string html;
    for (const auto& [name, curve] : curves_) {
      Curve::Piece all;
      for (const Curve::Piece& piece : curve.pieces()) all.add(piece);
      const std::string range =
          all.count == 0
              ? "<td>-</td><td>-</td>"
              : fmt::format("<td>{}</td><td>{}</td>", number_text(all.low), number_text(all.high));
      html += fmt::format(
          "<tr><th>{}</th><td>{}</td>{}<td>{}{}</td></tr>\n",
          escaped_html(name),
          number_text(curve.last()),
          range,
          all.count + curve.not_finite(),
          curve.not_finite() == 0 ? "" : fmt::format(", {} not finite", curve.not_finite()));
    }
    if (html.empty()) return "";
    return "<div class=card><table "
           "class=numbers><tr><th></th><th>last</th><th>lowest</th><th>highest"
           "</th><th>values</th></tr>\n" +
           html + "</table></div>";
  }

  std::string times() const {
    const double all = waited_ + computed_;
    if (all <= 0) return "";
    return fmt::format(
        "<div class=card><div class=bar><i class=c1 style=\"width:{0:.1f}%\"></i><i class=c0 "
        "style=\"width:{1:.1f}%\"></i></div><span class=\"key c1\"><i></i>waiting for images "
        "{0:.0f}%</span><span class=\"key c0\"><i></i>computing {1:.0f}%</span></div>",
        100 * waited_ / all,
        100 * computed_ / all);
  }

  /// Those of the run's log file, each once.
  std::string warnings() const {
    std::ifstream file(run_log_);
    std::set<std::string> seen;
    std::string html;
    for (std::string line; std::getline(file, line) && seen.size() < kMostWarnings;) {
      const std::size_t mark = line.find(" warning: ");
      if (mark != 19) continue;  // after the time
      const std::string text = line.substr(mark + 10);
      if (seen.insert(text).second) html += "<li>" + escaped_html(text) + "</li>\n";
    }
    return html.empty() ? "" : "<div class=card><ul>\n" + html + "</ul></div>";
  }

  std::string run_table() const {
    std::string html;
    for (const auto& [label, text] : texts_) html += row(label, text);
    if (first_step_ > 0) html += row("begun at step", std::to_string(first_step_));
    for (const auto& [label, text] : environment_) html += row(label, text);
    return html.empty() ? "" : "<div class=card><table>\n" + html + "</table></div>";
  }

  struct Picture {
    std::string png;
    int64_t step = 0;
  };
  std::string folder_, run_log_, title_, config_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::map<std::string, Curve> curves_;
  std::map<std::string, Picture> images_;
  std::map<std::string, std::string> texts_, captions_;
  std::vector<std::string> classes_, legend_;  // as metrics have them; as they are
  double waited_ = 0, computed_ = 0;           // seconds, up to a factor
  int64_t epoch_ = 0, step_ = 0, first_step_ = 0;
  int64_t timed_ = 0;  // step of the newest data_time
  Stopwatch stopwatch_;
};
CYTRA_REGISTER(Logger, HtmlReport, "HTMLReport");

}  // namespace
}  // namespace cytra::training
