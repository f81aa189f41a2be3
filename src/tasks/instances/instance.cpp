// InstanceHead, and the task of it: a number for each object, 2D and 3D. The network learns flows
// or stars (instances/targets.h), which the decoder turns into labels.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "tasks/image_task.h"
#include "tasks/instances/labels.h"
#include "tasks/instances/targets.h"

namespace cytra::tasks {
namespace {

using config::Node;
using Input = metrics::Metric::Input;

class InstanceHead final : public Head {
 public:
  struct Options : HeadOptions, ObjectOptions {
    static constexpr const char* kPurpose = kObjects;
    std::string method = "flows";
    std::vector<double> anisotropy;
    std::optional<int64_t> ignore_index;
    std::optional<double> diameter;
    void visit(auto& v) {
      visit_objects(v, y_key);
      v("method",
        method,
        "what the network learns. flows: directions to the objects' centres, as Cellpose; for any "
        "shape. stars: distances to their borders, as StarDist; for roundish ones",
        {"flows", "stars"});
      v("anisotropy",
        anisotropy,
        "3D stars: voxel sizes Z, Y, X, in any unit; null: equal",
        1e-12,
        1e12);
      v("ignore_index", ignore_index, "voxels with this label do not count; null: all count");
      v("diameter",
        diameter,
        "typical diameter of the training's objects, pixels, for predict.diameter",
        0.1,
        1e5);
      v("loss",
        loss,
        "the loss that is minimised; null: CellposeLoss for flows, StarDistLoss for stars",
        config::optional_component<nn::Loss>());
      v("metrics",
        metrics,
        "metrics of the objects of whole images",
        config::map_of<metrics::Metric>());
      v("decoder", decoder, "what makes labels", config::component<inference::Decoder>());
    }
    void check(const Node& /*model*/ = {}) {
      const bool has_flows = method == "flows";
      expect_loss_of(loss, has_flows ? nn::kFlows : nn::kStars);
      if (!anisotropy.empty() && anisotropy.size() != 3)
        throw ConfigError("task.anisotropy: {} numbers, expected Z, Y, X", anisotropy.size());
      if (loss.is_null())
        loss = config::parse_yaml(has_flows ? "_target_: CellposeLoss" : "_target_: StarDistLoss",
                                  "InstanceHead");
    }
  };
  explicit InstanceHead(const Options& options)
      : Head(options, {Input::objects}, 1),
        targets_{options.method, 2, {}, options.anisotropy, options.ignore_index, decoder_->grid()},
        steps_(decoder_->steps("labels")) {}

  void fit(int64_t spatial_dims, int64_t channels) override {
    const bool has_flows = targets_.method == "flows";
    if (has_flows ? channels != spatial_dims + 1 : channels < spatial_dims + 2) {
      throw ConfigError("task.model: {} channels, task.method={} in {} dimensions takes {}",
                        channels,
                        targets_.method,
                        spatial_dims,
                        has_flows
                            ? fmt::format("{}: a flow along each, and the object", spatial_dims + 1)
                            : fmt::format("1 and a ray's distance each, usually {}",
                                          spatial_dims == 2 ? 33 : 97));
    }
    targets_.spatial_dims = spatial_dims;
    const auto dims = static_cast<std::size_t>(spatial_dims);
    if (targets_.grid.size() == 1) targets_.grid.resize(dims, targets_.grid[0]);
    if (!targets_.grid.empty() && targets_.grid.size() != dims)
      throw ConfigError("task.decoder.stars.grid: {} numbers, expected {}, one for each dimension",
                        targets_.grid.size(),
                        dims);
    if (!has_flows) targets_.rays = ops::make_rays(channels - 1, spatial_dims, targets_.anisotropy);
  }

  void prepare(data::Sample& sample, const std::string& x_key) const override {
    prepare_objects(sample, y_key_, x_key, targets_.ignore_index);
  }
  bool has_loss_target() const override { return true; }
  void prepare_loss(data::Sample& sample) const override {
    at::Tensor& labels = sample.at(y_key_);
    labels = targets_.of(labels.unsqueeze(0))[0];
  }
  std::string text() const override {
    return fmt::format("{} {} {} {} {} {}",
                       y_key_,
                       targets_.method,
                       targets_.rays.directions.size(),
                       fmt::join(targets_.anisotropy, ","),
                       fmt::join(targets_.grid, ","),
                       targets_.ignore_index.value_or(-1));
  }
  std::optional<data::TargetMeaning> target_meaning() const override {
    return meaning_of_objects("", y_key_, targets_.ignore_index);
  }

  void update(const at::Tensor& output, const data::Batch& batch) override {
    const at::Tensor has_objects = batch.at(y_key_).gt(0).any().to(at::kCPU, at::kDouble);
    with_objects_ += at::stack({at::ones_like(has_objects), has_objects});
    Head::update(output, batch);
  }
  training::Metrics compute() override {
    const double* counts = with_objects_.const_data_ptr<double>();
    if (counts[0] > 0 && counts[1] == 0) no_objects_.warn(y_key_);
    with_objects_.zero_();
    return Head::compute();
  }
  std::vector<at::Tensor> sums() override {
    std::vector<at::Tensor> all = Head::sums();
    all.push_back(with_objects_);
    return all;
  }

  std::map<std::string, at::Tensor> preview(const at::Tensor& output,
                                            const data::Batch& batch) const override {
    const at::Tensor target = batch.at(y_key_)[0];
    const int64_t object = targets_.method == "flows" ? -1 : 0;  // of a batch of the training
    const at::Tensor shown = target.select(0, target.size(0) == 1 ? 0 : object).unsqueeze(0);
    if (!output.defined()) return {{"target", shown}};
    return {{"target", shown}, {"prediction", labels_of(output.slice(0, 0, 1))[0].to(at::kFloat)}};
  }

 protected:
  /// The target that the loss compares with. Whole images have labels, of which it is made.
  at::Tensor target(const at::Tensor& output, const data::Batch& batch) const override {
    const at::Tensor& target = batch.at(y_key_);
    return target.size(1) == 1 ? targets_.of(target).to(output.device()) : target;
  }
  metrics::Compared compared(const at::Tensor& output,
                             const data::Batch& batch,
                             Input /*input*/) const override {
    metrics::Compared compared{labels_of(output), batch.at(y_key_).cpu()};
    if (!targets_.ignore_index) return compared;
    compared.mask = compared.truth.ne(*targets_.ignore_index);
    compared.truth = compared.truth * compared.mask;
    return compared;
  }

 private:
  /// (N,K,...) -> (N,1,...) int32, on the CPU.
  at::Tensor labels_of(const at::Tensor& values) const {
    std::vector<at::Tensor> images;
    for (const at::Tensor& image : values.cpu().unbind(0)) {
      inference::Result result{image, false, {}};
      inference::apply_all(steps_, result);
      images.push_back(result.values);
    }
    return at::stack(images);
  }

  InstanceTargets targets_;
  inference::PostprocessSteps steps_;
  /// Batches, and those with objects.
  at::Tensor with_objects_ = at::zeros({2}, at::TensorOptions(at::kDouble));
  NoObjects no_objects_;
};
CYTRA_REGISTER(Head, InstanceHead, "InstanceHead");
CYTRA_REGISTER(training::Task, OneHead<InstanceHead>, "InstanceTask");

}  // namespace
}  // namespace cytra::tasks
