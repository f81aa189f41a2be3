#pragma once
// Prepares images for a model: applies the checkpoint's transforms to a whole image or row by row.
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "data/sample/sample.h"

namespace cytra::inference {

/// An image as the model's input: in memory, or read when its rows are requested.
class ModelInput {
 public:
  ModelInput() = default;
  /// Takes an image (C,[D,]H,W) float32.
  explicit ModelInput(const at::Tensor& image);
  data::Sample sample;                // its name and geometry, and other results of the transforms
  std::vector<int64_t> shape;         // C,[D,]H,W
  io::Geometry loaded_geometry;       // of the file, before the transforms
  std::vector<int64_t> loaded_shape;  // of the file, before the transforms
  bool moves_back = false;  // its result is wanted in the voxels of the file, which are others
  bool is_in_place = true;  // every transform works by rows: none moves voxels
  /// Rows of the outer axis (Z of a stack, Y of a plane): (C,count,...) float32. An image that is
  /// read by rows is read ahead in a thread, fastest in order, by one caller at a time. Throws:
  /// DataError.
  at::Tensor rows(int64_t first, int64_t count) const;
  /// Rows with the loaded values, moved as by the transforms: for viewing and for measurements.
  at::Tensor shown(int64_t first, int64_t count) const;
  /// The image before transforms of its intensities, float32, in the voxels of `shape`.
  at::Tensor loaded() const;
  bool is_by_rows() const { return reader_ != nullptr; }
  /// Some of the rows as an image of their own, to measure what they take: its geometry is that of
  /// the whole image.
  ModelInput part(int64_t first, int64_t count) const;

 private:
  friend class InputTransforms;
  class Reader;
  void read_whole(data::Sample& sample, const std::string& image, const data::Transform& transform);
  at::Tensor image_, shown_;
  at::Tensor given_;  // of a sample that was loaded before
  std::shared_ptr<Reader> reader_;
};

/// The transforms of a checkpoint's predict list (or valid list).
class InputTransforms {
 public:
  /// `config`: data.transforms of the training. A transform whose only key is `left_out`, the
  /// target's key when there is no target, is left out. Throws: ConfigError.
  InputTransforms(const config::Node& config, const std::string& left_out);
  /// Applies all transforms to a sample. `spacing_um`: [z, y, x] or [y, x], for files without a
  /// spacing. `by_rows_from`: an image whose loading takes more bytes is read only as rows are
  /// requested, if each transform allows that. Throws: DataError.
  ModelInput apply(data::Sample sample,
                   const std::string& image,
                   const std::vector<double>& spacing_um = {},
                   int64_t by_rows_from = INT64_MAX) const;
  /// Has results in the voxels of the file from now on: images without an affine get one of their
  /// spacing (unknown: 1 mm), so that the transforms track where voxels move.
  void track_places() { tracks_ = true; }
  /// The channels of the image that the model takes, from now on.
  void expect_channels(int64_t channels);
  /// Whether colours that are grey are to be read as one channel.
  bool take_grey() const { return channels_ == 1; }
  /// The shape, C,[D,]H,W, of the result of apply(); no voxels are read where the transforms work
  /// by rows.
  std::vector<int64_t> shape_of(data::Sample sample, const std::string& image) const;
  /// Whether the transforms select the time points that are loaded.
  bool choose_time() const { return choose_time_; }
  /// The files' axes where data.axes is not set: LoadImaged's, or "".
  const std::string& axes() const { return axes_; }

 private:
  ModelInput apply(data::Sample sample,
                   const std::string& image,
                   const std::vector<double>& spacing_um,
                   int64_t by_rows_from,
                   bool scans) const;
  data::Transforms transforms_, lazy_;  // the same transforms, but images are read when needed
  bool choose_time_ = false, tracks_ = false;
  int64_t channels_ = 0;       // what the model takes of the image; 0: not known, or any
  int64_t made_channels_ = 0;  // what transforms make of any; 0: none do
  std::string axes_;
};

/// The bytes that loading an image takes: as on file, and as float32.
int64_t loading_bytes(const io::ImageInfo& info);

}  // namespace cytra::inference
