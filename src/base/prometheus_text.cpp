#include "base/prometheus_text.h"

#include <cmath>

#include <fmt/format.h>

namespace cytra {
namespace {

std::string label_text(const std::string& value) {
  std::string text;
  for (const char letter : value) {
    if (letter == '\\' || letter == '"') text += '\\';
    text += letter == '\n' ? ' ' : letter;
  }
  return text;
}

/// The shortest text that is read as the same number.
std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::to_string(value);
}

}  // namespace

PrometheusText& PrometheusText::metric(const std::string& name,
                                       const std::string& help,
                                       const char* type) {
  name_ = name;
  if (!help.empty()) text_ += fmt::format("# HELP {} {}\n", name, help);
  text_ += fmt::format("# TYPE {} {}\n", name, type);
  return *this;
}

PrometheusText& PrometheusText::sample(double value, const Labels& labels, const char* end) {
  text_ += name_ + end;
  std::string separator = "{";
  for (const auto& [key, label] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", separator, key, label_text(label));
    separator = ",";
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value_text(value));
  return *this;
}

}  // namespace cytra
