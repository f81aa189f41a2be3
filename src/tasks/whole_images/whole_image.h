#pragma once
// The common part of tasks on whole images: a network that gives K numbers of an image, which are
// compared with cells of a table.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/loader/batch.h"
#include "tasks/image_task.h"
#include "tasks/whole_images/image_target.h"

namespace cytra::tasks {

/// A head whose target is C numbers of an image, which are compared with the model's as an image of
/// one voxel. It is not registered: MultiTask predicts through windows, which whole images have
/// none of.
class WholeImageHead : public Head {
 public:
  /// `options`: as of Head. Throws: as MetricSet.
  WholeImageHead(const HeadOptions& options, ImageTarget target);
  void fit(int64_t spatial_dims, int64_t channels) override;
  void prepare(data::Sample& sample, const std::string& x_key) const override;
  std::string text() const override;
  void update(const at::Tensor& output, const data::Batch& batch) override;
  training::Metrics compute() override;
  report::Findings findings() const override;
  /// Task::caption(), by the output for a batch's first sample; undefined: the target alone.
  std::string caption(const at::Tensor& output, const data::Batch& batch) const;
  std::vector<at::Tensor> sums() override;
  std::map<std::string, at::Tensor> preview(const at::Tensor& /*output*/,
                                            const data::Batch& /*batch*/) const override {
    return {};  // a number is no image
  }

 protected:
  training::Metrics values() const override;
  const ImageTarget& image_target() const { return target_; }
  /// (N,C,[1,]1,1)
  at::Tensor target(const at::Tensor& output, const data::Batch& batch) const override;
  metrics::Compared compared(const at::Tensor& output,
                             const data::Batch& batch,
                             metrics::Metric::Input input) const override;

 private:
  ImageTarget target_;
  /// The results and targets of all images added up, (2,K), and their number: of one image alone
  /// they are its own.
  at::Tensor results_, images_;
};

/// Throws: ConfigError for options of a head that are for voxels.
void expect_no_voxels(const HeadOptions& options);
/// Throws: ConfigError for a network that gives images.
void expect_classifier(const nn::Model& model);

/// A task of one head T, with the keys of both in one map. Images are validated whole.
template <class T>
class WholeImageTask final : public ImageTask {
 public:
  struct Options : T::Options {
    std::string x_key = "raw";
    config::Node model;
    void visit(auto& v) {
      v("x_key", x_key, "the image's key in a sample");
      v("model", model, "the network: ImageClassifier", config::component<nn::Model>());
      T::Options::visit(v);
    }
    void check() { T::Options::check(model); }
  };
  explicit WholeImageTask(const Options& options)
      : WholeImageTask(options,
                       std::make_shared<T>(static_cast<const typename T::Options&>(options))) {}

  bool is_scored() const override { return true; }
  void validation_step(const data::Batch& batch) override {
    head_->update(model()(batch.at(x_key())), batch);
  }
  void gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all) override {
    head_->gather(of_all);
  }
  std::map<std::string, at::Tensor> preview(const data::Batch& batch) override {
    return {{"input", batch.at(x_key())[0]}};
  }
  std::string caption(const data::Batch& batch, bool is_predicted) override {
    const at::Tensor image = batch.at(x_key()).slice(0, 0, 1);
    return head_->caption(is_predicted ? model()(image) : at::Tensor(), batch);
  }

 private:
  WholeImageTask(const Options& options, std::shared_ptr<T> head)
      : ImageTask({options.x_key, options.model, {}}, {{"", head}}), head_(std::move(head)) {
    expect_classifier(model());
  }
  std::shared_ptr<T> head_;
};

}  // namespace cytra::tasks
