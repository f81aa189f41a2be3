#pragma once
// The experiment that `train --plan` writes.
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/setup/plan_options.h"
#include "cli/program.h"
#include "config/node.h"

namespace cytra::app {

/// Makes numbers, or lists of them, of six digits.
config::Node numbers(double value);
template <class T>
config::Node numbers(const std::vector<T>& values) {
  config::Node node = config::Node::make_list();
  for (const T& value : values) {
    if constexpr (std::is_arithmetic_v<T>) {
      node.list.push_back(numbers(static_cast<double>(value)));
    } else {
      node.list.push_back(numbers(value));
    }
  }
  return node;
}

/// The values of an experiment by sections, with a comment before each.
class ExperimentFile {
 public:
  /// Sets a value. `key`: dotted below a section. Comments of one section follow each other.
  void set(const std::string& key, config::Node value, const std::string& comment = "");
  std::string text() const;

 private:
  struct Section {
    std::string key;
    config::Node value;
    std::string comment;
  };
  std::vector<Section> sections_;
};

/// Settings of the command line that the experiment gets, too.
struct Carried {
  std::vector<std::pair<std::string, config::Node>> values;
  std::vector<std::pair<std::string, std::string>> groups;  // chosen: data=folder
  bool has(const std::string& key) const;
};
Carried carried_by(const cli::Run& run);

/// The experiment's file, and how `train` finds it: --config-dir FOLDER experiment=NAME.
struct PlanTarget {
  std::string file, folder, name;
};
/// Finds the experiment's place. Throws: ConfigError for a place where `train` would not find it,
/// and for a file that exists.
PlanTarget plan_target(const PlanOptions& options, const std::string& data_path);

}  // namespace cytra::app
