// The targets, and the transform that makes them in the loader.
#include "tasks/instances/targets.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/same_grid.h"
#include "ops/labels/flow_fields.h"
#include "tasks/instances/labels.h"

namespace cytra::tasks {
namespace {

class InstanceLabels final : public data::Transform {
 public:
  InstanceLabels(const std::string& x_key,
                 const std::string& y_key,
                 int64_t in_channels,
                 const InstanceTargets& targets,
                 bool makes_targets)
      : x_key_(x_key),
        y_key_(y_key),
        in_channels_(in_channels),
        targets_(targets),
        makes_targets_(makes_targets) {
    name = "InstanceTask";
    text = fmt::format("{} {} {} {} {} {} {} {} {}",
                       name,
                       x_key,
                       y_key,
                       in_channels,
                       targets.method,
                       targets.rays.directions.size(),
                       fmt::join(targets.anisotropy, ","),
                       targets.ignore_index.value_or(-1),
                       makes_targets);
  }
  void apply(data::Sample& sample, Rng& /*rng*/) const override {
    const int64_t channels = sample.at(x_key_).size(0);
    if (in_channels_ > 0 && channels != in_channels_) {
      throw DataError(fmt::format("{}: {} channels, the model expects {} (set raw_im_channels)",
                                  sample.id,
                                  channels,
                                  in_channels_));
    }
    data::expect_same_grid(sample, y_key_, x_key_);
    renumber_large_labels(sample, y_key_);
    at::Tensor& labels = sample.at(y_key_);
    const std::string wrong = what_is_wrong(labels, sample.size(x_key_));
    const auto source = sample.sources.find(y_key_);
    const bool has_file = source != sample.sources.end() && !source->second.path.empty();
    const std::string& path = has_file ? source->second.path : sample.id;
    if (!wrong.empty()) throw DataError(path + ": " + wrong);
    if (makes_targets_) labels = targets_.of(labels.unsqueeze(0))[0];
  }

 private:
  std::string what_is_wrong(const at::Tensor& labels, const std::vector<int64_t>& image) const {
    const std::vector<int64_t> size = labels.sizes().slice(1).vec();
    if (labels.size(0) != 1)
      return fmt::format(
          "{} channels, expected one of labels: 0 for none, a number for each object",
          labels.size(0));
    if (size != image)
      return fmt::format(
          "labels of ({}), their image has ({})", fmt::join(size, ","), fmt::join(image, ","));
    if (labels.ne(labels.round()).any().item<bool>())
      return "labels with fractions, expected whole numbers; resampling needs mode nearest";
    const at::Tensor negative = labels.lt(0);
    if ((targets_.ignore_index ? negative.logical_and(labels.ne(*targets_.ignore_index)) : negative)
            .any()
            .item<bool>())
      return "negative labels, expected 0 for none; task.ignore_index names what is not known";
    return "";
  }
  std::string x_key_, y_key_;
  int64_t in_channels_;
  InstanceTargets targets_;
  bool makes_targets_;
};

}  // namespace

at::Tensor InstanceTargets::of(const at::Tensor& labels) const {
  std::vector<at::Tensor> targets;
  for (const at::Tensor& image : labels.select(1, 0).to(at::kCPU, at::kInt).unbind(0)) {
    const at::Tensor unknown = ignore_index ? image.eq(*ignore_index) : at::Tensor();
    const at::Tensor objects = ignore_index ? image.masked_fill(unknown, 0) : image;
    const auto known = [&](const at::Tensor& object) {
      return (ignore_index ? object.masked_fill(unknown, -1) : object).unsqueeze(0);
    };
    if (method == "flows") {
      targets.push_back(
          at::cat({ops::masks_to_flows(objects), known(objects.ne(0).to(at::kFloat))}));
    } else {
      targets.push_back(at::cat(
          {known(ops::edt_probability(objects, anisotropy)), ops::star_distances(objects, rays)}));
    }
  }
  return at::stack(targets);
}

std::shared_ptr<data::Transform> make_instance_transform(const std::string& x_key,
                                                         const std::string& y_key,
                                                         int64_t in_channels,
                                                         const InstanceTargets& targets,
                                                         bool makes_targets) {
  return std::make_shared<InstanceLabels>(x_key, y_key, in_channels, targets, makes_targets);
}

}  // namespace cytra::tasks
