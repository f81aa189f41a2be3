#include "training/parameter_groups.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/error.h"

namespace cytra::training {
namespace {

std::string block_of(const std::string& name) {
  std::size_t begin = 0, first = name.find('.');
  for (int part = 0; part < 3; ++part) {
    const std::size_t end = name.find('.', begin);
    if (end == std::string::npos) break;
    if (end > begin && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin),
                                   name.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](char c) { return c >= '0' && c <= '9'; }))
      return name.substr(0, end);
    begin = end + 1;
  }
  return name.substr(0, first);
}

void decay_layers(double decay,
                  const NamedParameters& parameters,
                  std::vector<ParameterSettings>& settings) {
  std::vector<std::string> blocks;
  std::vector<std::ptrdiff_t> block;  // of each parameter
  for (const auto& [name, parameter] : parameters) {
    const auto place = std::ranges::find(blocks, block_of(name));
    block.push_back(place - blocks.begin());
    if (place == blocks.end()) blocks.push_back(block_of(name));
  }
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto distance = static_cast<std::ptrdiff_t>(blocks.size()) - 1 - block[i];
    settings[i].lr_scale *= std::pow(decay, static_cast<double>(distance));
  }
}

[[noreturn]] void throw_no_match(std::size_t group,
                                 const std::string& pattern,
                                 const NamedParameters& parameters) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(parameters.size(), 5); ++i)
    names += parameters[i].first + ", ";
  throw ConfigError(
      "optimizer.param_groups[{}].params: '{}' matches none of the model's {} parameters ({}...)",
      group,
      pattern,
      parameters.size(),
      names);
}

}  // namespace

void ParameterGroup::check() const {
  if (params.empty()) throw ConfigError("params: expected a regular expression, '.' matches all");
  try {
    std::regex{params};
  } catch (const std::regex_error& error) {
    throw ConfigError("params: '{}' is not a regular expression: {}", params, error.what());
  }
}

std::vector<ParameterSettings> settings_of(const GroupOptions& options,
                                           double weight_decay,
                                           const NamedParameters& parameters) {
  std::vector<ParameterSettings> settings(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    const bool no_decay = options.no_decay_norm_and_bias &&
                          (parameter.dim() <= 1 || name.find("bias") != std::string::npos);
    settings[i].weight_decay = no_decay ? 0 : weight_decay;
  }
  if (options.layer_decay) decay_layers(*options.layer_decay, parameters, settings);
  std::vector<bool> taken(parameters.size());
  for (std::size_t g = 0; g < options.param_groups.size(); ++g) {
    const ParameterGroup& group = options.param_groups[g];
    const std::regex pattern(group.params);
    bool matched = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!std::regex_search(parameters[i].first, pattern)) continue;
      matched = true;
      if (taken[i]) continue;
      taken[i] = true;
      settings[i].lr_scale *= group.lr_scale;
      if (group.weight_decay) settings[i].weight_decay = *group.weight_decay;
      settings[i].freeze = group.freeze;
    }
    if (!matched) throw_no_match(g, group.params, parameters);
  }
  return settings;
}

}  // namespace cytra::training
