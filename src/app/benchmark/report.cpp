#include "app/benchmark/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/table.h"

namespace cytra::app {
namespace {

using config::Node;

/// The number `key` of a row as text; "" where the row has none.
std::string number(const Node& row, const char* key, const char* format, double factor = 1) {
  const Node* node = row.find_direct(key);
  if (node == nullptr || node->is_null()) return "";
  return fmt::format(fmt::runtime(format), node->as<double>() * factor);
}

/// The change against a baseline: "+12 %, slower".
std::string change_text(const Node& row) {
  const std::string change = number(row, "change", "{:+.0f} %", 100);
  const Node* verdict = row.find_direct("verdict");
  return verdict == nullptr || verdict->string == "same" ? change : change + " " + verdict->string;
}

}  // namespace

std::pair<double, double> range_of(const Node& row) {
  const Node* const low = row.find_direct("median_low_ms");
  if (low != nullptr && !low->is_null())
    return {low->as<double>(), row.get<double>("median_high_ms")};
  return {row.get<double>("min_ms"), row.get<double>("max_ms")};
}

std::vector<std::string> headings() {
  return {"median ms",
          "95 %",
          "p95 ms",
          "images/s",
          "speedup",
          "peak MB",
          "max diff",
          "GFLOP/s",
          "of peak",
          "change"};
}

std::vector<std::string> cells_of(const Node& row) {
  std::string interval = number(row, "median_low_ms", "{:.2f}");
  if (!interval.empty()) interval += "-" + number(row, "median_high_ms", "{:.2f}");
  std::string speedup = number(row, "speedup", "{:.2f}");
  if (const std::string low = number(row, "speedup_low", "{:.2f}"); !low.empty())
    speedup += fmt::format(" ({}-{})", low, number(row, "speedup_high", "{:.2f}"));
  return {number(row, "median_ms", "{:.2f}"),
          interval,
          number(row, "p95_ms", "{:.2f}"),
          number(row, "images_per_s", "{:.2f}"),
          speedup,
          number(row, "peak_memory_mb", "{:.0f}"),
          number(row, "max_difference", "{:.1e}"),
          number(row, "flops_per_s", "{:.1f}", 1e-9),
          number(row, "share_of_peak", "{:.0f} %", 100),
          change_text(row)};
}

void each_row(Node& report, const EachRow& look) {
  for (const char* section : {"inference", "training"}) {
    Node* batches = report.find_direct(section);
    if (batches == nullptr) continue;
    for (auto& [batch, rows] : batches->map) {
      for (auto& [option, row] : rows.map) look(section, batch, option, row);
    }
  }
}

std::string table_of(Node report) {
  std::vector<std::vector<std::string>> lines;
  std::string section_before, text, notes;
  const auto flush = [&] {
    if (lines.empty()) return;
    const auto has_none = [](const auto& line) { return line.back().empty(); };
    if (std::all_of(lines.begin() + 1, lines.end(), has_none)) {  // no baseline
      for (auto& line : lines) line.pop_back();
    }
    text += format_table(lines) + notes;
    notes.clear();
  };
  const auto line_of = [](const std::string& name, std::vector<std::string> cells) {
    cells.insert(cells.begin(), name);
    return cells;
  };
  each_row(report, [&](const auto& section, const auto& batch, const auto& option, Node& row) {
    if (section != section_before) {
      flush();
      lines = {line_of("batch  " + section, headings())};
      section_before = section;
    }
    const std::string name = fmt::format("{:>5}  {}", batch, option);
    if (const Node* error = row.find_direct("error"); error != nullptr) {
      notes += fmt::format("{}: {}\n", name, error->string);
    } else {
      lines.push_back(line_of(name, cells_of(row)));
    }
  });
  flush();
  return text;
}

}  // namespace cytra::app
