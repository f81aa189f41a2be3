// RegressionHead, and the task of it: the values of another image, such as a stain that is
// predicted from an unstained image (label-free microscopy).
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/loader/batch.h"
#include "data/sample/same_grid.h"
#include "tasks/image_task.h"
#include "tasks/target_scale.h"

namespace cytra::tasks {
namespace {

using config::Node;
using Input = metrics::Metric::Input;

class RegressionHead final : public Head {
 public:
  struct Options : HeadOptions {
    std::optional<int64_t> out_channels;
    bool normalize_target = true;
    void visit(auto& v) {
      HeadOptions::visit(v);
      v("out_channels",
        out_channels,
        "channels of the target; null: as many as the model has",
        1,
        65536);
      v("normalize_target",
        normalize_target,
        "learn the target scaled to mean 0 and deviation 1; `decoder` keeps the mean and the "
        "deviation of the training's targets and scales predictions back; false: learn it as it "
        "is");
    }
    void check(const Node& model = Node::make_map()) {
      expect_loss_of(loss, nn::kValues);
      if (!out_channels) out_channels = model.get<int64_t>("out_channels", 1);
      if (metrics.is_null()) metrics = Node::make_map();
      if (decoder.is_null())
        decoder = config::parse_yaml("{_target_: RegressionDecoder}", "RegressionHead");
    }
  };
  explicit RegressionHead(const Options& options)
      : Head(options, {Input::values}, *options.out_channels),
        options_(options),
        scale_(options.decoder) {}

  void prepare(data::Sample& sample, const std::string& x_key) const override {
    data::expect_same_grid(sample, y_key_, x_key);
    const at::Tensor& target = sample.at(y_key_);
    const std::vector<int64_t> size = sample.size(x_key);
    const std::string& file = sample.file_of(y_key_);
    if (target.size(0) != *options_.out_channels ||
        target.sizes().slice(1) != at::IntArrayRef(size)) {
      throw DataError(
          "{}: a target of ({}), expected ({},{}): the model's channels in the image's size",
          file,
          fmt::join(target.sizes(), ","),
          *options_.out_channels,
          fmt::join(size, ","));
    }
    if (!target.sum().isfinite().item<bool>() && !target.isfinite().all().item<bool>())
      throw DataError(file + ": a target with values that are NaN or infinite");
    if (mask_key_) mask_of(sample, *mask_key_, x_key);
  }

  std::string text() const override {
    return fmt::format("{} {} {}", y_key_, *options_.out_channels, mask_key_.value_or(""));
  }

  std::optional<data::TargetMeaning> target_meaning() const override {
    data::TargetMeaning meaning;
    meaning.kind = data::TargetMeaning::Kind::values;
    meaning.num_classes = *options_.out_channels;
    meaning.key = y_key_;
    return meaning;
  }

  Node fit_decoder(const EachBatch& each) override {
    if (options_.normalize_target && !scale_.is_there()) measure(each);
    return options_.decoder;
  }

  std::map<std::string, at::Tensor> preview(const at::Tensor& output,
                                            const data::Batch& batch) const override {
    const at::Tensor target = batch.at(y_key_).to(at::kFloat)[0];
    if (!output.defined()) return {{"target", target}};
    return {{"target", target},
            {"prediction", decoder_->decode(output.slice(0, 0, 1), "value")[0]}};
  }

 protected:
  at::Tensor target(const at::Tensor& output, const data::Batch& batch) const override {
    const at::Tensor target = batch.at(y_key_).to(at::kFloat);
    if (output.size(1) != target.size(1)) {
      throw ConfigError("task.model: {} channels, the target '{}' has {}",
                        output.size(1),
                        y_key_,
                        target.size(1));
    }
    return scale_.scaled(target);
  }

  at::Tensor mask(const data::Batch& batch) const override {
    return mask_key_ ? batch.at(*mask_key_).ne(0) : at::Tensor();
  }

  metrics::Compared compared(const at::Tensor& output,
                             const data::Batch& batch,
                             Input /*input*/) const override {
    return {decoder_->decode(output, "value"), batch.at(y_key_).to(at::kFloat), mask(batch)};
  }

 private:
  /// Mean and deviation of the targets' voxels that count, by channel.
  void measure(const EachBatch& each) {
    at::Tensor sums = at::zeros({3, *options_.out_channels}, at::kDouble);
    each([&](const data::Batch& batch) {
      const at::Tensor values = batch.at(y_key_).to(at::kDouble);
      const at::Tensor counts = mask_key_
                                    ? batch.at(*mask_key_).ne(0).to(at::kDouble).expand_as(values)
                                    : at::ones_like(values);
      const auto by_channel = [](const at::Tensor& tensor) {
        return tensor.transpose(0, 1).flatten(1).sum(1);
      };
      sums += at::stack(
          {by_channel(counts), by_channel(counts * values), by_channel(counts * values.square())});
    });
    const at::Tensor mean = sums[1] / sums[0];
    const at::Tensor deviation = (sums[2] / sums[0] - mean.square()).clamp_min(0).sqrt();
    if (!mean.isfinite().all().item<bool>())
      throw DataError("{}: no voxel of the training's targets counts", y_key_);
    TargetScale::write(mean, deviation, options_.decoder);
    decoder_ = make<inference::Decoder>(options_.decoder);
    scale_ = TargetScale(options_.decoder);
  }

  Options options_;
  TargetScale scale_;
};

CYTRA_REGISTER(Head, RegressionHead, "RegressionHead");
CYTRA_REGISTER(training::Task, OneHead<RegressionHead>, "RegressionTask", "LabelfreeTask");

}  // namespace
}  // namespace cytra::tasks
