#pragma once
// Prometheus' text format 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cytra {

/// A text of metrics, one after the other, each with its samples.
class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  /// Begins a metric. `help` may be empty. `type`: counter, gauge, summary, histogram.
  PrometheusText& metric(const std::string& name, const std::string& help, const char* type);
  /// A sample of it. `end` is put behind its name: "_sum".
  PrometheusText& sample(double value, const Labels& labels = {}, const char* end = "");
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

}  // namespace cytra
