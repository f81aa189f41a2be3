// Part of app/benchmark/report.h: a report as an HTML page.
#include <algorithm>

#include <fmt/format.h>

#include "app/benchmark/report.h"
#include "base/escape.h"
#include "base/strings.h"
#include "report/line_chart.h"
#include "report/page.h"

namespace cytra::app {
namespace {

using config::Node;
using report::chart_card;
using report::ChartAxis;
using report::colour_key;
using report::LineChart;
using report::tile;

bool has_figures(const Node& row) {
  return row.find_direct("median_ms") != nullptr;
}

/// Rows of a section at one batch size: a bar for each option's images/s.
std::string bars(const std::string& batch, const Node& rows) {
  double most = 0;
  for (const auto& [option, row] : rows.map)
    most = std::max(most, row.get<double>("images_per_s", 0));
  std::string body;
  for (const auto& [option, row] : rows.map) {
    if (!has_figures(row)) continue;
    const double rate = row.get<double>("images_per_s");
    body += fmt::format(
        "<div class=key>{}: {:.4g} images/s</div><div class=bar><i class=c0 "
        "style=\"width:{:.1f}%\"></i></div>\n",
        escaped_html(option),
        rate,
        100 * rate / most);
  }
  return chart_card("Batch " + batch, "", body);
}

/// A chart of images/s over batch sizes, with a line for each option.
std::string lines(const Node& batches) {
  ChartAxis x, y;
  x.title = "batch";
  y.title = "images/s";
  x.is_log = y.is_log = true;
  std::vector<std::pair<std::string, LineChart::Points>> curves;
  for (const auto& [batch, rows] : batches.map) {
    const double size = std::stod(batch);
    for (const auto& [option, row] : rows.map) {
      if (!has_figures(row)) continue;
      const double rate = row.get<double>("images_per_s");
      x.include(size);
      y.include(rate);
      const auto same = [&name = option](const auto& curve) { return curve.first == name; };
      auto curve = std::ranges::find_if(curves, same);
      if (curve == curves.end()) curve = curves.insert(curves.end(), {option, {}});
      curve->second.emplace_back(size, rate);
    }
  }
  if (batches.map.size() < 2 || curves.empty()) return "";
  x.add_margin();
  y.add_margin();
  LineChart chart({480, 290, 64, 14, 10, 48}, x, y);
  std::string key;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const int colour = static_cast<int>(i % 6);
    chart.add_line(colour, curves[i].first, curves[i].second);
    for (const auto& [size, rate] : curves[i].second) chart.add_dot(colour, size, rate);
    key += colour_key(colour, curves[i].first);
  }
  return chart_card("By batch size", key, chart.element());
}

/// A chart of FLOP/s over FLOPs per byte: what the device can do, and numbered dots for the
/// options.
std::string roofline(const Node& report, const Node& rows) {
  const Node& peaks = report.at("roofline").at("product_flops_per_s");
  const double bandwidth = report.get<double>("roofline.copy_bytes_per_s", 0);
  ChartAxis x, y;
  x.title = "FLOP per byte of products";
  y.title = "GFLOP/s";
  x.is_log = y.is_log = true;
  for (const auto& [option, row] : rows.map) {
    if (row.find_direct("flops_per_byte") == nullptr) continue;
    x.include(row.get<double>("flops_per_byte"));
    y.include(row.get<double>("flops_per_s") / 1e9);
  }
  if (x.low > x.high || bandwidth <= 0 || peaks.map.empty()) return "";  // nothing was counted
  for (const auto& [name, peak] : peaks.map) {
    x.include(peak.as<double>() / bandwidth);
    y.include(peak.as<double>() / 1e9);
  }
  x.low /= 2;
  x.high *= 2;
  y.add_margin();
  LineChart chart({480, 320, 64, 14, 16, 48}, x, y);
  std::string key;
  int place = 0;
  for (const auto& [name, node] : peaks.map) {
    const double peak = node.as<double>(), corner = peak / bandwidth;
    const int colour = place++ % 6;
    const double first = std::max(x.low, y.low * 1e9 / bandwidth);
    chart.add_line(colour,
                   name,
                   {{first, first * bandwidth / 1e9}, {corner, peak / 1e9}, {x.high, peak / 1e9}});
    key += colour_key(colour, name);
  }
  int number = 0;
  for (const auto& [option, row] : rows.map) {
    if (row.find_direct("flops_per_byte") == nullptr) continue;
    chart.add_dot(5,
                  row.get<double>("flops_per_byte"),
                  row.get<double>("flops_per_s") / 1e9,
                  std::to_string(++number));
    key += fmt::format("<span class=key>{} {}</span>", number, escaped_html(option));
  }
  return chart_card("Roofline", key, chart.element());
}

std::string table(const Node& batches) {
  std::string html = "<div class=card><table class=numbers><tr><th>batch</th><th>option</th>";
  for (const std::string& heading : headings()) html += "<th>" + escaped_html(heading) + "</th>";
  html += "</tr>\n";
  for (const auto& [batch, rows] : batches.map) {
    for (const auto& [option, row] : rows.map) {
      html += fmt::format("<tr><td>{}</td><td>{}</td>", batch, escaped_html(option));
      if (has_figures(row)) {
        for (const std::string& cell : cells_of(row)) html += "<td>" + escaped_html(cell) + "</td>";
      } else {
        html += fmt::format("<td colspan={}>{}</td>",
                            headings().size(),
                            escaped_html(row.get<std::string>("error")));
      }
      html += "</tr>\n";
    }
  }
  return html + "</table></div>\n";
}

std::string tiles(const Node& report) {
  std::string html = "<div class=tiles>" + tile("device", report.get<std::string>("device"));
  const auto shape = report.get<std::vector<std::string>>("input_shape");
  html += tile("input", join(shape, " x "));
  for (const auto& [name, peak] : report.at("roofline").at("product_flops_per_s").map)
    html += tile(name + " products", fmt::format("{:.0f} GFLOP/s", peak.as<double>() / 1e9));
  html += tile("memory",
               fmt::format("{:.1f} GB/s", report.get<double>("roofline.copy_bytes_per_s") / 1e9));
  return html + "</div>\n";
}

}  // namespace

std::string html_of(Node report) {
  std::string html = tiles(report);
  for (const char* section : {"inference", "training"}) {
    const Node* batches = report.find_direct(section);
    if (batches == nullptr) continue;
    html += fmt::format("<h2>{}</h2>\n<div class=grid2>", section) + lines(*batches);
    for (const auto& [batch, rows] : batches->map) html += bars(batch, rows);
    html += roofline(report, batches->map.front().second) + "</div>\n" + table(*batches);
  }
  html += "<h2>Model</h2><div class=card><pre>" +
          escaped_html(config::to_yaml(report.at("model"))) + "</pre></div>\n";
  return report::page(report.get<std::string>("model._target_") + ", measured", "", html);
}

}  // namespace cytra::app
