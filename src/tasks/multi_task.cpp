// MultiTask: several heads on one backbone, each with its own target, loss, metrics and decoder.
// Follows cyto_dl.models.im2im.MultiTaskIm2Im; its model is nn's MultiHead.
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "inference/models/trained_head.h"
#include "tasks/image_task.h"

namespace cytra::tasks {
namespace {

using config::Node;

class MultiTask final : public ImageTask {
 public:
  struct Options : ImageTaskOptions {
    Node heads, weights;
    void visit(auto& v) {
      ImageTaskOptions::visit(v);
      v("heads",
        heads,
        "what is learned of each of the model's heads, by its name",
        config::map_of<Head>());
      v("weights",
        weights,
        "weights of the heads' losses in their sum, by name; null or missing: 1");
    }
    /// Channels are those of the model's heads.
    void check() {
      expect_image_model(model);
      std::vector<std::string> names;
      for (auto& [name, head] : heads.map) {
        if (!head.is_map()) continue;
        names.push_back(name);
        const Node channels = inference::head_channels(model, name);
        if (channels.is_null()) continue;
        fit_options(head,
                    Head::kKind,
                    {{"num_classes", channels}, {"out_channels", channels}},
                    fmt::format("the model's head has {} channels", channels.as<int64_t>()));
      }
      if (names.empty())
        throw ConfigError("heads: empty, expected one or more, each under its name");
      for (const auto& [name, weight] : weights.map) {
        const bool is_known = heads.find_direct(name) != nullptr;
        const double share = weight.is_null() ? 1 : weight.as<double>();
        if (is_known && !(share >= 0 && std::isfinite(share)))
          config::throw_bad_value(weight, "a weight of at least 0");
        if (is_known) continue;
        throw ConfigError("weights.{}: no such head.{}", name, suggestion(name, names));
      }
    }
  };
  explicit MultiTask(const Options& options) : ImageTask(options, weighted_heads(options)) {}

 private:
  static std::vector<WeightedHead> weighted_heads(const Options& options) {
    std::vector<WeightedHead> heads;
    for (const auto& [name, head] : options.heads.map) {
      if (!head.is_map()) continue;  // null: switched off
      heads.push_back({name, make<Head>(head), options.weights.get<double>(name, 1.0)});
    }
    return heads;
  }
};
CYTRA_REGISTER(training::Task, MultiTask, "MultiTask", "MultiTaskIm2Im");

}  // namespace
}  // namespace cytra::tasks
