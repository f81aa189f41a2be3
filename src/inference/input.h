#pragma once
// Images on their way into a model: the checkpoint's transforms, on a whole image or row by row.
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "data/sample.h"

namespace cytra::inference {

/// An image as the model takes it: in memory, or read as its rows are asked for.
class ModelInput {
 public:
  ModelInput() = default;
  /// (C,[D,]H,W) float32.
  explicit ModelInput(const at::Tensor& image);
  data::Sample sample;                // its name and geometry, and what else the transforms left
  std::vector<int64_t> shape;         // C,[D,]H,W
  io::Geometry loaded_geometry;       // of the file, before the transforms
  std::vector<int64_t> loaded_shape;  // likewise
  /// Its rows of the outer axis (Z of a stack, Y of a plane): (C,count,...) float32. By rows: best
  /// in order, read ahead in a thread; by one caller at a time. Throws: DataError.
  at::Tensor rows(int64_t first, int64_t count) const;
  /// The same with the values as they were loaded, where the transforms have moved them: for the
  /// eye and for measurements.
  at::Tensor shown(int64_t first, int64_t count) const;
  bool is_by_rows() const { return reader_ != nullptr; }

 private:
  friend class InputTransforms;
  class Reader;
  at::Tensor image_, shown_;
  std::shared_ptr<Reader> reader_;
};

/// The transforms of a checkpoint's predict list (or valid list), and what they choose.
class InputTransforms {
 public:
  /// `config`: data.transforms of the training. A transform that has nothing to work on but
  /// `left_out`, the target's key when there is none, is left out. Throws: ConfigError.
  InputTransforms(const config::Node& config, const std::string& left_out);
  /// Puts a sample through all of them. `spacing_um`: [z, y, x] or [y, x], for files that do not
  /// tell. `by_rows_from`: of an image whose loading takes more bytes, no more is read than is
  /// asked for, if each transform allows that. Throws: DataError.
  ModelInput apply(data::Sample sample,
                   const std::string& image,
                   const std::vector<double>& spacing_um = {},
                   int64_t by_rows_from = INT64_MAX) const;
  /// From now on an image without an affine gets one of its spacing (unknown: 1 mm), so that the
  /// transforms keep account of where its voxels go.
  void track_places() { tracks_ = true; }
  /// The shape, C,[D,]H,W, that apply() would give; no voxels are read where the transforms work by
  /// rows.
  std::vector<int64_t> shape_of(data::Sample sample, const std::string& image) const;
  /// They say which time points are loaded.
  bool choose_time() const { return choose_time_; }
  /// The files' axes where data.axes does not say: LoadImaged's, or "".
  const std::string& axes() const { return axes_; }

 private:
  ModelInput apply(data::Sample sample,
                   const std::string& image,
                   const std::vector<double>& spacing_um,
                   int64_t by_rows_from,
                   bool scans) const;
  data::Transforms transforms_, lazy_;  // the same, but images are read when they are asked for
  bool choose_time_ = false, tracks_ = false;
  std::string axes_;
};

/// What loading an image takes: as on file, and as float32.
int64_t loading_bytes(const io::ImageInfo& info);

}  // namespace cytra::inference
