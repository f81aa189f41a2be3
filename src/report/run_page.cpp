#include "report/run_page.h"

#include <algorithm>
#include <cmath>

#include <cytra_pages.h>
#include <fmt/format.h>

#include "base/escape.h"
#include "base/strings.h"
#include "io/objects/palette.h"
#include "report/page.h"

namespace cytra::report {
namespace {

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
    if (base.ends_with("_" + name)) return base.substr(0, base.size() - name.size() - 1) + head;
  }
  return metric;
}

/// The plot that a metric belongs to: "loss" for train/loss_step and val/loss, "dice" for
/// val/dice_class_1.
std::string topic_of(const std::string& name, const std::vector<std::string>& classes) {
  if (name.ends_with("_time")) return "seconds per batch";
  std::string topic = name;
  for (const char* stage : {"train/", "val/", "test/"}) {
    if (topic.starts_with(stage))
      topic = without_class(topic.substr(std::string_view(stage).size()), classes);
  }
  for (const std::string_view ending : {"_step", "_epoch"}) {
    if (topic.ends_with(ending)) topic.resize(topic.size() - ending.size());
  }
  const bool is_other = topic.ends_with("-momentum") || topic.ends_with("-weight_decay");
  if (topic == "lr" || (topic.starts_with("lr-") && !is_other)) return "learning rate";
  if (topic.starts_with("grad_2.0_norm")) return "norms of gradients";
  return topic;
}

/// The order of the plots: losses first, then metrics, then settings.
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

std::string grid(const std::string& cards) {
  return cards.empty() ? "" : "<div class=grid2>\n" + cards + "</div>";
}

std::string row(const std::string& label, const std::string& text) {
  std::string cell = escaped_html(text);
  if (text.find('\n') != std::string::npos) cell = "<pre>" + cell + "</pre>";  // a table
  return "<tr><th>" + escaped_html(label) + "</th><td>" + cell + "</td></tr>\n";
}

}  // namespace

bool NaturalOrder::operator()(const std::string& a, const std::string& b) const {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::size_t end_a = std::min(a.find_first_not_of("0123456789", i), a.size()),
                        end_b = std::min(b.find_first_not_of("0123456789", j), b.size());
      if (end_a - i != end_b - j) return end_a - i < end_b - j;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

std::string RunPage::html(const std::map<std::string, double>& results) const {
  const auto outcome = texts.find("outcome");
  const std::string ended = outcome == texts.end() ? "ended" : outcome->second;
  const std::string badge = fmt::format("<span class=\"badge{}\">{}</span>",
                                        ended == "finished" || ended == "running" ? "" : " bad",
                                        escaped_html(ended));
  return page(title,
              badge,
              tiles(results) + section("Curves", plots()) +
                  section("Newest validation",
                          grid(precision_recall_html(findings) + confusion_html(findings)) +
                              worst_images()) +
                  section("Images", pictures()) + section("Metrics", metrics_table()) +
                  section("Time", times()) + section("Warnings", warning_list()) +
                  section("Run", run_table()) +
                  section("Configuration",
                          "<details class=card><summary>Every value of this run</summary><pre>" +
                              escaped_html(config) + "</pre></details>") +
                  "<script>\n" + pages::report_js + "</script>\n");
}

std::string RunPage::tiles(const std::map<std::string, double>& results) const {
  std::string html = "<div class=tiles>\n";
  for (const auto& [name, value] : results) {
    if (name.starts_with("best/")) html += tile("best " + name.substr(5), number_text(value));
  }
  for (const auto& [name, curve] : curves) {
    if (name.starts_with("val/")) html += tile("last " + name, number_text(curve.last()));
    if (name.starts_with("test/")) html += tile(name, number_text(curve.last()));
  }
  html += tile("epochs", std::to_string(epoch));
  html += tile("steps", std::to_string(step));
  return html + tile("time", format_seconds(seconds)) + "</div>\n";
}

std::string RunPage::plots() const {
  using Lines = std::vector<std::pair<std::string, const Curve*>>;
  std::map<std::pair<int, std::string>, Lines> topics;
  for (const auto& [name, curve] : curves) {
    const std::string topic = topic_of(name, classes);
    topics[{rank_of(topic), topic}].emplace_back(name, &curve);
  }
  std::string html;
  for (auto& [key, lines] : topics) {
    const std::string svg =
        plot_svg(lines, static_cast<double>(first_step), static_cast<double>(step));
    if (svg.empty()) continue;
    std::string keys;
    const std::vector<int> colours = colours_of(lines);
    for (std::size_t i = 0; i < lines.size(); ++i) keys += colour_key(colours[i], lines[i].first);
    html += chart_card(key.second, keys, "<div class=tip></div>" + svg);
  }
  return grid(html);
}

std::string RunPage::worst_images() const {
  std::map<std::string, std::string> places;
  for (const auto& [name, caption] : captions) {
    const std::string image = caption.substr(0, caption.find(": "));
    if (name.starts_with("val_images/") && images.count(name) != 0) places[image] = name;
  }
  return images_html(findings, monitor, is_higher_better, places);
}

std::string RunPage::pictures() const {
  std::string html;
  for (const auto& [name, image] : images) {
    const auto caption = captions.find(name);
    html += fmt::format(
        "<figure id=\"{0}\"><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"><figcaption>{0}, "
        "step "
        "{2}{3}</figcaption></figure>\n",
        escaped_html(name),
        base64(image.png),
        image.step,
        caption == captions.end() ? "" : "<br>" + escaped_html(caption->second));
  }
  if (html.empty()) return "";
  return colours() + "<div class=images>\n" + html + "</div>";
}

/// The colours of the classes in the pictures.
std::string RunPage::colours() const {
  constexpr std::size_t kColours = 7;  // as draw_panel() repeats them
  std::string html;
  for (std::size_t k = 0; k < legend.size(); ++k) {
    const auto colour = io::label_colour(static_cast<int64_t>(k % kColours) + 1);
    html += fmt::format("<span class=key><i style=\"background:#{:02x}{:02x}{:02x}\"></i>{}</span>",
                        colour[0],
                        colour[1],
                        colour[2],
                        escaped_html(legend[k]));
  }
  return html.empty() ? "" : "<p>" + html + "</p>\n";
}

std::string RunPage::metrics_table() const {
  std::string html;
  for (const auto& [name, curve] : curves) {
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

std::string RunPage::times() const {
  const double all = waited + computed;
  if (all <= 0) return "";
  const double waiting = 100 * waited / all, computing = 100 * computed / all;
  return fmt::format(
             "<div class=card><div class=bar><i class=c1 style=\"width:{:.1f}%\"></i><i class=c0 "
             "style=\"width:{:.1f}%\"></i></div>",
             waiting,
             computing) +
         colour_key(1, fmt::format("waiting for images {:.0f}%", waiting)) +
         colour_key(0, fmt::format("computing {:.0f}%", computing)) + "</div>";
}

std::string RunPage::warning_list() const {
  std::string html;
  for (const std::string& text : warnings) html += "<li>" + escaped_html(text) + "</li>\n";
  return html.empty() ? "" : "<div class=card><ul>\n" + html + "</ul></div>";
}

std::string RunPage::run_table() const {
  std::string html;
  for (const auto& [label, text] : texts) html += row(label, text);
  if (first_step > 0) html += row("begun at step", std::to_string(first_step));
  for (const auto& [label, text] : environment) html += row(label, text);
  return html.empty() ? "" : "<div class=card><table class=run>\n" + html + "</table></div>";
}

}  // namespace cytra::report
