// ScalarRegressionTask: numbers of a whole image, which columns of a table tell, such as an age or
// a count.
#include <ATen/ATen.h>

#include "data/loader/batch.h"
#include "tasks/target_scale.h"
#include "tasks/whole_images/whole_image.h"

namespace cytra::tasks {
namespace {

using config::Node;

class ScalarRegressionHead final : public WholeImageHead {
 public:
  struct Options : HeadOptions {
    static constexpr const char* kPurpose = kValuesOfImage;
    std::vector<std::string> columns;
    bool normalize_target = true;
    ImageTarget target;  // of the options above
    Options() { y_key = "value"; }
    void visit(auto& v) {
      HeadOptions::visit(v);
      v("columns",
        columns,
        "the table's columns of numbers, one for each of the model's; []: y_key");
      v("normalize_target",
        normalize_target,
        "learn numbers scaled to mean 0 and deviation 1; `decoder` keeps the mean and the "
        "deviation of the training's and scales predictions back; false: learn them as they are");
    }
    void check(const Node& /*model*/) {
      expect_no_voxels(*this);
      Node task = Node::make_map();
      task.set("_target_", Node::make_string("ScalarRegressionTask"));
      task.set("y_key", Node::make_string(y_key));
      task.set("columns", Node::make_list(columns));
      target = image_target_of(task);
      target.check();
      expect_loss_of(loss, nn::kValues);
      if (metrics.is_null()) metrics = Node::make_map();
      if (decoder.is_null())
        decoder = config::parse_yaml("{_target_: RegressionDecoder}", "ScalarRegressionHead");
    }
  };
  explicit ScalarRegressionHead(const Options& options)
      : WholeImageHead(options, options.target), options_(options), scale_(options.decoder) {}

  Node fit_decoder(const EachBatch& each) override {
    if (!options_.normalize_target || scale_.is_there()) return options_.decoder;
    std::vector<at::Tensor> all;
    each([&](const data::Batch& batch) { all.push_back(batch.at(y_key_).to(at::kDouble)); });
    const at::Tensor numbers = at::cat(all), mean = numbers.mean(0);
    const at::Tensor deviation = (numbers - mean).square().mean(0).sqrt();
    TargetScale::write(mean, deviation, options_.decoder);
    decoder_ = make<inference::Decoder>(options_.decoder);
    scale_ = TargetScale(options_.decoder);
    return options_.decoder;
  }

 protected:
  at::Tensor target(const at::Tensor& output, const data::Batch& batch) const override {
    const at::Tensor target = WholeImageHead::target(output, batch).to(at::kFloat);
    return scale_.scaled(target);
  }

 private:
  Options options_;
  TargetScale scale_;
};
CYTRA_REGISTER(training::Task, WholeImageTask<ScalarRegressionHead>, "ScalarRegressionTask");

}  // namespace
}  // namespace cytra::tasks
