// ClassificationTask: the class of a whole image, or labels that it has or has not, which columns
// of a table tell, or the image's folder.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "tasks/whole_images/whole_image.h"

namespace cytra::tasks {
namespace {

using config::Node;

class ClassificationHead final : public WholeImageHead {
 public:
  struct Options : HeadOptions {
    static constexpr const char* kPurpose = kClassOfImage;
    std::optional<int64_t> num_classes;
    std::vector<std::string> class_names;
    bool multilabel = false, one_hot = false;
    ImageTarget target;  // of the options above
    Options() { y_key = "label"; }
    void visit(auto& v) {
      HeadOptions::visit(v);
      v("num_classes", num_classes, "null: the model's out_channels", 1, 65536);
      v("class_names",
        class_names,
        "the words that mean class 0, 1, ...; []: images have the numbers; with multilabel, the "
        "columns of the labels");
      v("multilabel",
        multilabel,
        "an image has any of the labels class_names, each a column of 0 and 1");
      v("one_hot",
        one_hot,
        "classes of training images are a channel each, which batch transforms can mix (MixUpd)");
    }
    void check(const Node& model) {
      expect_no_voxels(*this);
      Node task = Node::make_map();
      task.set("_target_", Node::make_string("ClassificationTask"));
      task.set("y_key", Node::make_string(y_key));
      task.set("class_names", Node::make_list(class_names));
      task.set("multilabel", Node::make_boolean(multilabel));
      task.set("num_classes",
               Node::make_integer(num_classes.value_or(model.get<int64_t>("out_channels", 2))));
      target = image_target_of(task);
      target.check();
      if (multilabel && class_names.empty())
        throw ConfigError("class_names: [], but multilabel=true: expected the labels' columns");
      if (!multilabel && target.count < 2)
        throw ConfigError("num_classes: 1, expected 2 classes or more, or multilabel=true");
      expect_loss_of(loss, nn::kMasks);
      const bool has_numbers = !multilabel && !one_hot;
      const std::string meaning =
          multilabel ? "multilabel=true means labels that do not exclude each other"
                     : "multilabel=false means that an image has one class";
      const std::map<std::string, Node> fitting{{"sigmoid", Node::make_boolean(multilabel)},
                                                {"softmax", Node::make_boolean(!multilabel)},
                                                {"multilabel", Node::make_boolean(multilabel)},
                                                {"to_onehot_y", Node::make_boolean(has_numbers)}};
      fit_options(loss, nn::Loss::kKind, fitting, meaning);
      metrics = target.metrics(metrics);
      if (decoder.is_null()) {
        decoder = config::parse_yaml(
            fmt::format("{{_target_: ClassDecoder, num_classes: {}, multilabel: {}}}",
                        target.count,
                        multilabel),
            "ClassificationHead");
      }
    }
  };
  explicit ClassificationHead(const Options& options)
      : WholeImageHead(options, options.target), one_hot_(options.one_hot) {}

  bool has_loss_target() const override { return one_hot_; }
  void prepare_loss(data::Sample& sample) const override {
    if (!one_hot_) return;
    at::Tensor& target = sample.tensors[y_key_];
    target = image_target().one_hot(target.unsqueeze(0))[0];
  }
  /// Looks at the classes of the training's first images. Throws: DataError when there is but one.
  Node fit_decoder(const EachBatch& each) override {
    if (image_target().kind != ImageTarget::Kind::classes) return {};
    at::Tensor counts = at::zeros({image_target().count}, at::kDouble);
    int64_t batches = 0;
    each([&](const data::Batch& batch) {
      ++batches;
      const at::Tensor classes = image_target().one_hot(batch.at(y_key_));
      counts += classes.sum(0).to(at::kDouble);
    });
    if (counts.gt(0).sum().item<int64_t>() > 1 || batches >= kBatchesToFit) return {};
    throw DataError(
        "all {:.0f} images that training begins with are of the class {}: expected two classes or "
        "more",
        counts.sum().item<double>(),
        image_target().name_of(counts.argmax().item<int64_t>()));
  }

 protected:
  at::Tensor target(const at::Tensor& output, const data::Batch& batch) const override {
    const at::Tensor target = WholeImageHead::target(output, batch);
    return one_hot_ ? image_target().one_hot(target) : target;
  }

 private:
  bool one_hot_;
};
CYTRA_REGISTER(training::Task, WholeImageTask<ClassificationHead>, "ClassificationTask");

}  // namespace
}  // namespace cytra::tasks
