#pragma once
// What `train --plan` takes, the section `plan` of the configuration.
#include <optional>
#include <string>

namespace cytra::app {

struct PlanOptions {
  std::optional<std::string> output;
  std::optional<double> memory_gb;
  void visit(auto& v) {
    v("output",
      output,
      "file to write, FOLDER/experiment/NAME.yaml; null: in local/, named as data.path");
    v("memory_gb",
      memory_gb,
      "GB of memory that a training may take; null: what is available, at most 8, as in nnU-Net",
      0.1,
      1e4);
  }
};

}  // namespace cytra::app
