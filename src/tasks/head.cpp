#include "tasks/head.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/loader/batch.h"
#include "data/sample/same_grid.h"
#include "report/findings.h"

namespace cytra::tasks {

using config::Node;
using metrics::Metric;

Head::Head(const HeadOptions& options, const std::vector<Metric::Input>& inputs, int64_t channels)
    : y_key_(options.y_key),
      mask_key_(options.mask_key),
      decoder_(make<inference::Decoder>(options.decoder)),
      loss_(make<nn::Loss>(options.loss)),
      metrics_(options.metrics, inputs, channels) {}

at::Tensor Head::loss(const std::vector<at::Tensor>& levels, const data::Batch& batch) const {
  const at::Tensor truth = target(levels.at(0), batch), counts = mask(batch);
  if (levels.size() == 1) return (*loss_)(levels[0], truth, counts);
  if (counts.defined())
    throw ConfigError("task.mask_key: can't be used together with model.deep_supervision");
  return loss_->of_levels(levels, truth);
}

at::Tensor mask_of(data::Sample& sample, const std::string& mask_key, const std::string& x_key) {
  data::expect_same_grid(sample, mask_key, x_key);
  const at::Tensor& mask = sample.at(mask_key);
  const std::vector<int64_t> size = sample.size(x_key);
  if (mask.size(0) == 1 && mask.sizes().slice(1) == at::IntArrayRef(size)) return mask;
  throw DataError("{}: '{}' has ({}), expected one channel of ({}) as the image",
                  sample.id,
                  mask_key,
                  fmt::join(mask.sizes(), ","),
                  fmt::join(size, ","));
}

void Head::update(const at::Tensor& output, const data::Batch& batch) {
  losses_.add(loss({output}, batch));
  metrics_.update([&](Metric::Input input) {
    metrics::Compared made = compared(output, batch, input);
    for (const io::Geometry& geometry : batch.geometries)
      made.spacing_um.push_back(spacing_of(geometry, output.dim() - 2));
    return made;
  });
}

training::Metrics Head::values() const {
  training::Metrics all = metrics_.compute();
  all["loss"] = losses_.mean();
  return all;
}

training::Metrics Head::compute() {
  const training::Metrics all = values();
  losses_.take();
  metrics_.reset();
  return all;
}

void Head::count_confusions(int64_t classes) {
  metrics_.count_confusions(classes);
}

report::Findings Head::findings() const {
  report::Findings found;
  found.all.metrics = values();
  metrics_.show(found);
  return found;
}

std::vector<at::Tensor> Head::sums() {
  std::vector<at::Tensor> all = metrics_.sums();
  all.push_back(losses_.sums());
  return all;
}

void keep_decoders(Node& task, const Node& before) {
  const Node *own = task.find_direct("decoder"), *was = before.find_direct("decoder");
  if (was != nullptr && (own == nullptr || own->is_null())) task.set("decoder", *was);
  Node* heads = task.find_direct("heads");
  if (heads == nullptr) return;
  for (auto& [name, head] : heads->map) {
    const Node* head_before = before.find("heads." + name);
    if (head.is_map() && head_before != nullptr) keep_decoders(head, *head_before);
  }
}

void fit_options(Node& component,
                 const std::string& kind,
                 const std::map<std::string, Node>& fitting,
                 const std::string& meaning) {
  if (!component.is_map()) return;
  const config::Components& known = config::components_of(kind);
  std::string type;
  try {
    type = known.name_of(component);
  } catch (const ConfigError&) {
    return;  // reported where the component itself is checked
  }
  for (const config::OptionInfo& option : known.types.at(type).describe()) {
    Node* given = component.find_direct(option.name);
    if (option.type == config::OptionInfo::Type::part && option.part.components == &known) {
      if (given == nullptr) continue;
      if (option.part.form == config::Part::Form::map) {
        for (auto& [name, inner] : given->map) fit_options(inner, kind, fitting, meaning);
      } else {
        fit_options(*given, kind, fitting, meaning);
      }
      continue;
    }
    const auto value = fitting.find(option.name);
    if (value == fitting.end()) continue;
    if (given == nullptr || given->is_null()) {
      component.set(option.name, value->second);
    } else if (!meaning.empty() && !config::equal(*given, value->second)) {
      throw ConfigError("{}: {}={}, but {}: expected {}, or null, which follows",
                        given->where(),
                        option.name,
                        config::to_json(*given),
                        meaning,
                        config::to_json(value->second));
    }
  }
}

}  // namespace cytra::tasks
