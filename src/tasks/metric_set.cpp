#include "tasks/metric_set.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/registry.h"
#include "report/findings.h"

namespace cytra::tasks {
namespace {

using metrics::Metric;

bool is_in(const std::vector<Metric::Input>& inputs, Metric::Input input) {
  return contains(inputs, input);
}

/// Registered metrics of these inputs.
std::vector<std::string> metrics_of(const std::vector<Metric::Input>& inputs) {
  std::vector<std::string> names;
  for (const std::string& name : Registry<Metric>::instance().names()) {
    config::Node node = config::Node::make_map();
    node.set("_target_", config::Node::make_string(name));
    try {
      if (is_in(inputs, make<Metric>(node)->input())) names.push_back(name);
    } catch (const ConfigError&) {  // it has options that must be given
    }
  }
  return names;
}

}  // namespace

std::vector<double> spacing_of(const io::Geometry& geometry, int64_t dims) {
  return {geometry.spacing_um.end() - dims, geometry.spacing_um.end()};
}

MetricSet::MetricSet(const config::Node& named,
                     const std::vector<Input>& inputs,
                     int64_t channels) {
  for (const auto& [name, node] : named.map) {
    if (node.is_null()) continue;
    const auto metric = metrics_.emplace(name, make<Metric>(node)).first->second;
    if (is_in(inputs, metric->input())) {
      metric->expect(metric->input() == Input::objects ? 1 : channels);
      continue;
    }
    throw ConfigError("{}: {} is not for what this task predicts; expected one of {}",
                      node.where(),
                      node.get<std::string>("_target_"),
                      fmt::join(metrics_of(inputs), ", "));
  }
}

void MetricSet::update(const std::function<metrics::Compared(Input)>& compared) {
  std::map<Input, metrics::Compared> made;
  for (const auto& [name, metric] : metrics_) {
    const auto [place, is_new] = made.try_emplace(metric->input());
    if (is_new) place->second = compared(metric->input());
    metric->update(place->second);
  }
}

std::map<std::string, double> MetricSet::compute() const {
  std::map<std::string, double> all;
  for (const auto& [name, metric] : metrics_) {
    if (name.empty()) continue;
    for (const auto& [key, value] : metric->compute()) {
      if (!all.emplace(key, value).second) all[name + "_" + key] = value;
    }
  }
  return all;
}

void MetricSet::count_confusions(int64_t classes) {
  constexpr int64_t kMostShown = 32;
  if (classes > kMostShown) return;
  const auto metric = make<Metric>(
      config::parse_yaml("_target_: ConfusionMatrix", "MetricSet::count_confusions()"));
  metric->expect(classes);
  metrics_[""] = metric;
}

void MetricSet::show(report::Findings& findings) const {
  for (const auto& [name, metric] : metrics_) {
    if (const at::Tensor counts = metric->confusion(); counts.defined() && name.empty()) {
      for (const at::Tensor& row : counts.contiguous().unbind(0)) {
        const double* first = row.const_data_ptr<double>();
        findings.confusion.emplace_back(first, first + row.numel());
        findings.classes.push_back(std::to_string(findings.classes.size()));
      }
    }
    if (!findings.precision_recall.empty()) continue;
    for (const at::Tensor& curve : metric->precision_recall()) {
      auto& [k, points] = findings.precision_recall.emplace_back();
      k = fmt::format("class {}", findings.precision_recall.size() - 1);
      const auto values = curve.accessor<double, 2>();
      for (int64_t p = 0; p < values.size(0); ++p) points.emplace_back(values[p][0], values[p][1]);
    }
  }
}

void MetricSet::reset() {
  for (const auto& [name, metric] : metrics_) metric->reset();
}

void MetricSet::gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all) {
  for (const auto& [name, metric] : metrics_) metric->gather(of_all);
}

std::vector<at::Tensor> MetricSet::sums() const {
  std::vector<at::Tensor> all;
  for (const auto& [name, metric] : metrics_) {
    const std::vector<at::Tensor> own = metric->sums();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace cytra::tasks
