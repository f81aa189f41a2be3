#include "tasks/metric_set.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"

namespace cytra::tasks {
namespace {

using metrics::Metric;

bool is_in(const std::vector<Metric::Input>& inputs, Metric::Input input) {
  return std::ranges::find(inputs, input) != inputs.end();
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
    for (const auto& [key, value] : metric->compute()) {
      if (!all.emplace(key, value).second) all[name + "_" + key] = value;
    }
  }
  return all;
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
