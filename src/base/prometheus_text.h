#pragma once
// Prometheus' text format 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#include <string>
#include <utility>
#include <vector>

namespace cytra {

/// Writes a text of metrics, each with its samples.
class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  /// Begins a metric. `help` may be empty. `type`: counter, gauge, summary, histogram.
  PrometheusText& metric(const std::string& name, const std::string& help, const char* type);
  /// Adds a sample of the metric. `end` is put after its name: "_sum".
  PrometheusText& sample(double value, const Labels& labels = {}, const char* end = "");
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

}  // namespace cytra
