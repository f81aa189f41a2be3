// PromptableTask: masks of objects whose boxes are known. Losses and boxes are those of Segment
// Anything (arXiv:2304.02643, section 3 and appendix A): focal and Dice loss of the masks, and the
// squared error of the quality that the network predicts for them.
#include "nn/promptable.h"

#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/loader/batch.h"
#include "tasks/instances/labels.h"
#include "tasks/promptable/prompts.h"
#include "tasks/suited.h"
#include "training/task.h"

namespace cytra::tasks {
namespace {

class PromptableTask final : public training::Task {
 public:
  struct Options : ObjectOptions {
    static constexpr const char* kPurpose = kObjects;
    std::string x_key = "raw", y_key = "seg";
    config::Node model;
    int64_t max_boxes = 16, min_area = 10;
    double box_jitter = 0.1, box_jitter_max = 20;
    double lambda_focal = 1, lambda_dice = 1, lambda_iou = 1;
    void visit(auto& v) {
      v("x_key", x_key, "the image's key in a sample");
      visit_objects(v, y_key);
      v("model", model, "a network that takes prompts: Sam", config::component<nn::Model>());
      v("max_boxes",
        max_boxes,
        "objects of an image in a training step; in validation: objects computed at a time",
        1,
        1e4);
      v("min_area",
        min_area,
        "pixels of the square; smaller regions do not count as objects",
        1,
        1e9);
      v("box_jitter",
        box_jitter,
        "deviation of a box's coordinates in training, of the length of its side",
        0,
        1);
      v("box_jitter_max",
        box_jitter_max,
        "largest shift of a box's coordinates in training, in pixels of the square",
        0,
        1e4);
      v("lambda_focal", lambda_focal, "weight of the focal loss of the masks", 0, 1e6);
      v("lambda_dice", lambda_dice, "weight of their Dice loss", 0, 1e6);
      v("lambda_iou", lambda_iou, "weight of the squared error of the predicted quality", 0, 1e6);
    }
  };
  explicit PromptableTask(const Options& options)
      : options_(options),
        model_(make_model_of<nn::PromptableModel>(
            options.model, "takes no prompts, expected Sam (model=sam_tiny, model=sam)")) {
    side_ = model_->fixed_size().front();
  }

  nn::Model& model() override { return *model_; }
  std::string x_key() const override { return options_.x_key; }
  std::string program() const override { return "batch_segment"; }
  std::shared_ptr<data::Transform> sample_transform() override { return transform(true); }
  std::shared_ptr<data::Transform> validation_transform() override { return transform(false); }

  std::vector<data::TargetMeaning> target_meanings() const override {
    return {meaning_of_objects(options_.x_key, options_.y_key)};
  }

  at::Tensor training_step(const data::Batch& batch) override {
    const at::Tensor& prompts = batch.at(kPromptBoxes);  // (N,M,5)
    const at::Tensor embeddings = (*model_)(batch.at(options_.x_key))
                                      .unsqueeze(1)
                                      .expand({-1, prompts.size(1), -1, -1, -1})
                                      .flatten(0, 1);
    const at::Tensor rows = prompts.flatten(0, 1);
    const nn::PromptedMasks masks = model_->decode(embeddings, {rows.slice(1, 0, 4)});
    const at::Tensor numbers = prompts.select(2, 4).unsqueeze(-1).unsqueeze(-1);
    const at::Tensor truth = batch.at(options_.y_key).eq(numbers).flatten(0, 1);
    const at::Tensor counts = rows.select(1, 4).gt(0).to(at::kFloat);
    return (losses(masks, truth) * counts).sum() / counts.sum().clamp_min(1);
  }

  /// The target has the size of the whole image, since masks are compared at the size in which
  /// they are used.
  void validation_step(const data::Batch& batch) override {
    const at::Tensor& images = batch.at(options_.x_key);
    const at::Tensor& targets = batch.at(options_.y_key);
    for (int64_t i = 0; i < images.size(0); ++i) {
      const at::Tensor embedding = (*model_)(images.slice(0, i, i + 1));
      validate(embedding, targets[i][0]);
    }
  }

  training::Metrics validation_end() override {
    const double* sums = sums_.const_data_ptr<double>();
    const double objects = sums[0] > 0 ? sums[0] : std::nan("");
    if (std::isnan(objects)) no_objects_.warn(options_.y_key);
    const training::Metrics results{{"loss", sums[1] / objects},
                                    {"mask_iou", sums[2] / objects},
                                    {"box_iou", sums[3] / objects},
                                    {"quality_error", sums[4] / objects}};
    sums_.zero_();
    return results;
  }

  std::vector<at::Tensor> sums() override { return {sums_}; }

  std::map<std::string, at::Tensor> preview(const data::Batch& batch) override {
    const at::Tensor image = batch.at(options_.x_key).slice(0, 0, 1);
    const at::Tensor labels = batch.at(options_.y_key)[0][0].cpu();
    const nn::Placement placement = nn::place_in_square(labels.size(0), labels.size(1), side_);
    const at::Tensor target = nn::square_labels(labels, placement, side_);
    const at::Tensor embedding = (*model_)(image);
    at::Tensor prediction = at::zeros_like(target);
    for (const at::Tensor& some :
         boxes_of_labels(target, options_.min_area).split(options_.max_boxes)) {
      const at::Tensor logits = full_size(decoded(embedding, some).logits).squeeze(1).cpu();
      for (int64_t k = 0; k < some.size(0); ++k)
        prediction.masked_fill_(logits[k].gt(0), some[k][4].item<float>());
    }
    return {{"input", image[0]},
            {"target", target.unsqueeze(0)},
            {"prediction", prediction.unsqueeze(0)}};
  }

 private:
  std::shared_ptr<data::Transform> transform(bool is_training) const {
    PromptOptions prompts{side_, model_->pixels()};
    prompts.boxes = options_.max_boxes;
    prompts.jitter = options_.box_jitter;
    prompts.jitter_max = options_.box_jitter_max;
    prompts.min_area = options_.min_area;
    return make_prompt_transform(options_.x_key, options_.y_key, prompts, is_training);
  }
  /// Logits (B,1,h,w) -> (B,1,S,S) float32.
  at::Tensor full_size(const at::Tensor& logits) const {
    return at::upsample_bilinear2d(logits.to(at::kFloat), {side_, side_}, false);
  }
  nn::PromptedMasks decoded(const at::Tensor& embedding, const at::Tensor& boxes) {
    return model_->decode(embedding.expand({boxes.size(0), -1, -1, -1}),
                          {boxes.slice(1, 0, 4).to(embedding.device())});
  }
  /// The loss of each of B objects, at the masks' own size. truth: (B,S,S) bool. The focal loss is
  /// a sum over pixels divided by the object's area: in a mean over all pixels a cell of a large
  /// image would hardly count.
  at::Tensor losses(const nn::PromptedMasks& masks, const at::Tensor& truth) const {
    const at::Tensor logits = masks.logits.to(at::kFloat).flatten(1);
    const at::Tensor target =
        at::adaptive_avg_pool2d(truth.to(at::kFloat), masks.logits.sizes().slice(2)).flatten(1);
    const at::Tensor probability = logits.sigmoid();
    const at::Tensor entropy =
        at::binary_cross_entropy_with_logits(logits, target, {}, {}, at::Reduction::None);
    const at::Tensor miss = (probability - target).abs();  // 1 - probability of what is true
    const at::Tensor share = target * 0.25 + (1 - target) * 0.75;
    const at::Tensor area = target.sum(1);
    const at::Tensor focal = (share * miss.square() * entropy).sum(1) / area.clamp_min(1);
    const at::Tensor dice =
        1 - (2 * (probability * target).sum(1) + 1) / (probability.sum(1) + area + 1);
    const at::Tensor error =
        (masks.quality.to(at::kFloat).squeeze(1) - overlap(logits.detach().gt(0), target.gt(0.5)))
            .square();
    return options_.lambda_focal * focal + options_.lambda_dice * dice +
           options_.lambda_iou * error;
  }
  /// Intersection over union of masks (B,...) bool -> (B).
  static at::Tensor overlap(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor both = a.logical_and(b).flatten(1).sum(1).to(at::kFloat);
    return both / a.logical_or(b).flatten(1).sum(1).clamp_min(1);
  }
  void validate(const at::Tensor& embedding, const at::Tensor& labels) {
    const nn::Placement placement = nn::place_in_square(labels.size(0), labels.size(1), side_);
    const at::Tensor square = nn::square_labels(labels, placement, side_);
    for (const at::Tensor& some :
         boxes_of_labels(labels, options_.min_area).split(options_.max_boxes)) {
      at::Tensor boxes = some.clone();
      boxes.slice(1, 0, 4).copy_(placement.boxes(some.slice(1, 0, 4)));
      const nn::PromptedMasks masks = decoded(embedding, boxes);
      const at::Tensor numbers = some.select(1, 4).to(labels.device()).view({-1, 1, 1});
      const at::Tensor truth = labels.unsqueeze(0).eq(numbers);
      const at::Tensor found =
          nn::upscale_masks(masks.logits.to(at::kFloat).squeeze(1), placement, side_).gt(0);
      const at::Tensor iou = overlap(found, truth);
      const at::Tensor area =
          (some.select(1, 2) - some.select(1, 0)) * (some.select(1, 3) - some.select(1, 1));
      const at::Tensor of_box = truth.flatten(1).sum(1).cpu().to(at::kFloat) / area;
      double* const sums = sums_.mutable_data_ptr<double>();
      sums[0] += static_cast<double>(some.size(0));
      sums[1] += losses(masks, square.unsqueeze(0).eq(numbers)).sum().item<double>();
      sums[2] += iou.sum().item<double>();
      sums[3] += of_box.sum().item<double>();
      sums[4] += (masks.quality.to(at::kFloat).squeeze(1) - iou).abs().sum().item<double>();
    }
  }
  Options options_;
  std::shared_ptr<nn::PromptableModel> model_;
  int64_t side_ = 0;
  NoObjects no_objects_;
  /// The number of objects, and sums over them: the loss, the masks' IoU, the IoU of the boxes
  /// themselves, and the error of the predicted quality.
  at::Tensor sums_ = at::zeros({5}, at::TensorOptions(at::kDouble));
};
CYTRA_REGISTER(training::Task, PromptableTask, "PromptableTask");

}  // namespace
}  // namespace cytra::tasks
