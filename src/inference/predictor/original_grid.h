#pragma once
// Brings the rows of a result to the voxels of the image on file.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/image.h"
#include "ops/labels/row_step.h"
#include "ops/windows/sums.h"

namespace cytra::inference {

/// Resamples rows of the model's voxels to those of the file: labels by the nearest voxel (of two
/// the later one), other values linearly, up to half a voxel beyond the outer centres as there; 0
/// further away. Where the axes are turned against each other all rows are kept first.
/// Memory: rows of two of the model's voxels; where the outer axes differ the result, too, above
/// 512 MB in a file (KeptRows).
struct ToFileGrid {
  io::Geometry given, file;       // the model's voxels and the file's
  std::vector<int64_t> from, to;  // their sizes ([D,]H,W)
  bool are_labels = false;
  std::optional<ops::Finish> finish = {};  // makes labels of interpolated scores
  /// nnU-Net's separate_z_anisotropy_threshold: of a volume the nearest voxel is taken along an
  /// axis that is more times coarser than the finest one, by the spacing that the model learned
  /// (`from`'s axes), else by the file's; 0: there is none.
  double coarse_from = 0;
  std::vector<double> learned_spacing = {};  // (Z,)Y,X
  std::string folder = "";                   // as ops::KeptRows

  /// Shape: rows (C,n,...) of `from` -> (C' of `finish`, m,...) of `to`. Throws: DataError where an
  /// affine is missing, or planes of a 2D image are not the same.
  std::unique_ptr<ops::RowStep> rows() const;
};

/// The result of all rows at once.
at::Tensor all_of(ops::RowStep& step, const at::Tensor& rows);

}  // namespace cytra::inference
