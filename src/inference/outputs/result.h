#pragma once
// The result of one image: from the rows that a model makes to the rows and objects that outputs
// write.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/outputs/objects.h"
#include "inference/outputs/output.h"
#include "inference/postprocess/postprocess.h"
#include "inference/predictor/input.h"
#include "inference/predictor/predictor.h"

namespace cytra::inference {

/// The options of a result, besides the decoder's.
struct ResultOptions {
  PostprocessSteps steps;     // as returned by result_steps()
  double threshold = 0.5;     // of a mask's probability
  bool keeps_scored = false;  // scored() will be called
};

/// All steps of a result in their order: the decoder's, the task's (`postprocess` of its
/// configuration), then `more`, a list as predict.postprocess. Throws: ConfigError.
PostprocessSteps result_steps(const Predictor& predictor, const config::Node& more);

class ImageResult {
 public:
  using Outputs = std::vector<std::unique_ptr<ResultOutput>>;
  /// Begins a result. `predictor` and `options` must outlive it. The outputs get rows at once
  /// where no step, output or option needs the whole image.
  ImageResult(const Predictor& predictor,
              const ResultOptions& options,
              std::shared_ptr<const ModelInput> input,
              Outputs outputs);
  ~ImageResult();
  /// Takes the next rows of the model, (C,count,...) on the CPU; they are kept, and must not be
  /// changed. Throws: what the outputs throw.
  void take(const at::Tensor& rows);
  /// Finishes the result after all rows. Throws: what the steps and outputs throw; ConfigError
  /// where an output needs objects and the result has none.
  void finish();
  /// Both, of all rows that the predictor makes. Throws: as WindowedModel::run(), too.
  void run();
  /// The files that the outputs wrote, in their order; valid after finish().
  const ResultFiles& files() const { return files_; }
  /// The mean of the rows that the outputs got, of a form that is an uncertainty.
  double mean_uncertainty() const { return sum_ / std::max<double>(1, count_); }
  /// The values to score, (C,[D,]H,W), in the voxels of the model: labels where there are any,
  /// before the first step that makes objects from a mask, or before any step on values.
  const at::Tensor& scored() const { return scored_; }
  /// Whether the objects that outputs took are connected components of classes.
  bool has_components() const { return has_components_; }

  /// Whether the result is of objects, and has none.
  bool is_without_objects() const { return is_of_objects_ && !has_object_; }

  /// The memory in bytes that steps take at times while rows come, beside what they keep.
  int64_t work_bytes() const;

  // Outputs use these, once there are rows.
  /// The whole result: type, (C,Z,Y,X), geometry, channels' names.
  const io::ImageInfo& info() const { return info_; }
  /// The predicted image, in the voxels of the result where these are the file's; made at the
  /// first call where they differ from the model's.
  const ModelInput& image() const;
  int64_t image_channels() const { return input_->shape[0]; }
  /// The part that was read of the file that an image is in.
  io::Selection selection_of(const std::string& path) const;
  /// Whether outputs get all rows at once, and objects after them.
  bool is_whole() const { return is_whole_; }
  /// Whether its values are numbers of objects.
  bool is_of_objects() const { return is_of_objects_; }
  /// Whether labels() is possible.
  bool has_labels() const;
  /// Converts rows to labels of classes or objects.
  at::Tensor labels(const at::Tensor& rows) const;
  /// The classes of the objects whose rows outputs get; null: they have none.
  const ObjectClasses& classes() const { return classes_; }
  /// Whether its objects are of more than one class, or one that has a name.
  bool has_classes() const { return !result_.is_objects || info_.shape[0] > 1; }

 private:
  std::size_t scored_at() const;
  void begin_steps();
  void begin_components(int64_t channels);
  bool needs_whole() const;
  void add_move(bool are_scores);
  void describe(at::IntArrayRef shape, io::Dtype dtype);
  void expect_size(int64_t rows, int64_t columns) const;
  void put(const at::Tensor& rows, io::Dtype dtype);
  void put_components();
  void pass(std::size_t stage, const at::Tensor& rows);
  void apply_steps();
  void finish_whole();
  void give_objects();

  const Predictor& predictor_;
  const ResultOptions& options_;
  const std::shared_ptr<const ModelInput> input_;
  Outputs outputs_;
  Result result_;  // without values: of rows, after those steps
  /// A step on rows; without `step`, the way to the voxels of the file.
  struct Stage {
    std::unique_ptr<ops::RowStep> rows;
    const Postprocess* step = nullptr;
    bool takes_labels = false;
  };
  std::vector<Stage> stages_;
  std::size_t by_rows_ = 0;    // the first of the steps are stages
  bool moves_scores_ = false;  // to the voxels of the file, before all steps
  bool is_moved_ = false;      // one of the stages does it
  bool is_whole_ = false;
  std::unique_ptr<ops::RowStep>
      components_;                       // numbers the objects of classes; null: none are asked
  ObjectClasses classes_;                // the components'
  std::vector<at::Tensor> rows_;         // where it is kept whole
  std::vector<at::Tensor> scored_rows_;  // where scores are moved
  int64_t taken_ = 0;                    // rows
  at::Tensor scored_;
  io::ImageInfo info_;
  bool has_info_ = false, has_components_ = false;
  bool is_of_objects_ = false, has_object_ = false;
  double sum_ = 0, count_ = 0;
  mutable std::optional<ModelInput> image_;  // in the original grid
  ResultFiles files_;
};

/// Predicts an image of one or several files: transforms, windows, steps, and `outputs` by their
/// names (make_result_output). A large image is processed by rows. Throws: DataError, ConfigError,
/// IoError, MemoryError.
ResultFiles predict_files(const Predictor& predictor,
                          const data::Sample& sample,
                          const ResultOptions& options,
                          const OutputPlace& place,
                          const std::vector<std::string>& outputs);

}  // namespace cytra::inference
