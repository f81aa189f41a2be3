#include "tasks/head.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/batch.h"
#include "data/same_grid.h"

namespace cytra::tasks {
namespace {

using config::Node;
using metrics::Metric;

at::Tensor no_losses() {
  return at::zeros({2}, at::TensorOptions(at::kDouble));
}

}  // namespace

Head::Head(const HeadOptions& options, const std::vector<Metric::Input>& inputs, int64_t channels)
    : y_key_(options.y_key),
      mask_key_(options.mask_key),
      decoder_(make<inference::Decoder>(options.decoder)),
      loss_(make<nn::Loss>(options.loss)),
      metrics_(options.metrics, inputs, channels),
      loss_sums_(no_losses()) {}

at::Tensor Head::loss(const std::vector<at::Tensor>& levels, const data::Batch& batch) const {
  const at::Tensor truth = target(levels.at(0), batch), counts = mask(batch);
  if (levels.size() == 1) return (*loss_)(levels[0], truth, counts);
  if (counts.defined())
    throw ConfigError("task.mask_key: not together with model.deep_supervision");
  return loss_->of_levels(levels, truth);
}

at::Tensor mask_of(data::Sample& sample, const std::string& mask_key, const std::string& x_key) {
  data::expect_same_grid(sample, mask_key, x_key);
  const at::Tensor& mask = sample.at(mask_key);
  const std::vector<int64_t> size = sample.size(x_key);
  if (mask.size(0) == 1 && mask.sizes().slice(1) == at::IntArrayRef(size)) return mask;
  throw DataError(fmt::format("{}: '{}' has ({}), expected one channel of ({}) as the image",
                              sample.id,
                              mask_key,
                              fmt::join(mask.sizes(), ","),
                              fmt::join(size, ",")));
}

void Head::update(const at::Tensor& output, const data::Batch& batch) {
  const at::Tensor value = loss({output}, batch).to(at::kDouble);
  if (loss_sums_.device() != value.device()) loss_sums_ = loss_sums_.to(value.device());
  loss_sums_.add_(at::stack({value, at::ones_like(value)}));
  metrics_.update([&](Metric::Input input) {
    metrics::Compared made = compared(output, batch, input);
    for (const io::Geometry& geometry : batch.geometries)
      made.spacing_um.push_back(spacing_of(geometry, output.dim() - 2));
    return made;
  });
}

training::Metrics Head::compute() {
  const at::Tensor sums = loss_sums_.cpu();
  const double* numbers = sums.const_data_ptr<double>();
  training::Metrics all = metrics_.compute();
  all["loss"] = numbers[1] > 0 ? numbers[0] / numbers[1] : std::nan("");
  metrics_.reset();
  loss_sums_ = no_losses();
  return all;
}

std::vector<at::Tensor> Head::sums() {
  std::vector<at::Tensor> all = metrics_.sums();
  all.push_back(loss_sums_);
  return all;
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
    return;  // told where the component itself is checked
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
      throw ConfigError(fmt::format("{}: {}={}, but {}: expected {}, or null, which follows",
                                    given->where(),
                                    option.name,
                                    config::to_json(*given),
                                    meaning,
                                    config::to_json(value->second)));
    }
  }
}

}  // namespace cytra::tasks
