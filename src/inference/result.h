#pragma once
// The result of one image: from the rows that a model makes to what outputs write.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/input.h"
#include "inference/object_slabs.h"
#include "inference/outputs/output.h"
#include "inference/postprocess.h"
#include "inference/predictor.h"

namespace cytra::inference {

/// What is made of a model's rows beside what its decoder says.
struct ResultOptions {
  PostprocessSteps steps;  // as result_steps() gives them
  double threshold = 0.5;  // of a mask's probability
  /// In the voxels of the file, not in those of the transforms: for a predictor with tracks_places.
  bool original_grid = false;
  bool keeps_scored = false;  // scored() is asked for
};

/// All steps of a result in their order: the decoder's, the task's (`postprocess` of its
/// configuration), then `more`, a list as predict.postprocess. Throws: ConfigError.
PostprocessSteps result_steps(const Predictor& predictor, const config::Node& more);

class ImageResult {
 public:
  using Outputs = std::vector<std::unique_ptr<ResultOutput>>;
  /// `predictor` and `options` outlive this. Rows are given to the outputs as they come where no
  /// step, output or option needs the whole image.
  ImageResult(const Predictor& predictor,
              const ResultOptions& options,
              std::shared_ptr<const ModelInput> input,
              Outputs outputs);
  /// The next rows that the model made, (C,count,...) on the CPU; they are kept, and must not be
  /// changed. Throws: as the outputs.
  void take(const at::Tensor& rows);
  /// All rows are there. Throws: as the steps and outputs; ConfigError where an output needs
  /// objects and the result has none.
  void finish();
  /// Both, of all rows that the predictor makes. Throws: as WindowedModel::run(), too.
  void run();
  /// What the outputs wrote, after finish(): in their order.
  const ResultFiles& files() const { return files_; }
  /// What is scored, (C,[D,]H,W), in the voxels of the model: labels, of one that makes any, ahead
  /// of the first step that cuts objects from a mask, or of any step on values.
  const at::Tensor& scored() const { return scored_; }
  /// Whether the objects that outputs took are connected components of classes.
  bool has_components() const { return has_components_; }

  // For outputs, once rows are there.
  /// The whole result: type, (C,Z,Y,X), geometry, channels' names.
  const io::ImageInfo& info() const { return info_; }
  /// What was predicted, in the voxels of the result where these are the file's; made at the first
  /// call where they are others than the model's.
  const ModelInput& image() const;
  int64_t image_channels() const { return input_->shape[0]; }
  /// Whether labels() can tell labels.
  bool has_labels() const;
  /// Rows as labels of classes or objects.
  at::Tensor labels(const at::Tensor& rows) const;
  /// Whether its objects are of more than one class, or one that has a name.
  bool has_classes() const { return !result_.is_objects || info_.shape[0] > 1; }

 private:
  bool works_by_slabs() const;
  bool needs_whole() const;
  bool moves_to_file() const;
  void move_to_file(Result& result) const;
  void describe(at::IntArrayRef shape, io::Dtype dtype);
  void expect_size(int64_t rows, int64_t columns) const;
  void put(const at::Tensor& rows, io::Dtype dtype);
  void apply_steps();
  void finish_whole();
  void give_objects();

  const Predictor& predictor_;
  const ResultOptions& options_;
  const std::shared_ptr<const ModelInput> input_;
  Outputs outputs_;
  std::unique_ptr<ObjectSlabs> slabs_;  // steps of an image that is read by rows
  const bool is_whole_;
  const bool is_moved_;           // original_grid, and its voxels are others
  std::vector<at::Tensor> rows_;  // of one that is kept whole
  int64_t taken_ = 0;             // rows
  Result result_;                 // likewise
  at::Tensor scored_;
  io::ImageInfo info_;
  bool has_info_ = false, has_components_ = false;
  mutable std::optional<ModelInput> image_;  // in the original grid
  ResultFiles files_;
};

/// Predicts an image of a file, or of several: its transforms, windows, steps, and `outputs` by
/// their names (make_result_output). A large image goes by rows. Throws: DataError, ConfigError,
/// IoError, MemoryError.
ResultFiles predict_files(const Predictor& predictor,
                          const data::Sample& sample,
                          const ResultOptions& options,
                          const OutputPlace& place,
                          const std::vector<std::string>& outputs);

}  // namespace cytra::inference
