#pragma once
// The parts of a data set: shares, and cross-validation's, which take turns as its validation set.
// What is of one image stays together.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/datamodule.h"

namespace cytra::data {

/// Keys of data modules whose images can be parted.
struct FoldOptions {
  std::optional<int64_t> folds;
  int64_t fold = 0;
  template <class V>
  void visit(V& v) {
    v("folds",
      folds,
      "cross-validation: the images of train and valid together, in so many parts; null: none",
      2,
      1e6);
    v("fold", fold, "the part for validation, from 0", 0, 1e6);
  }
  /// Throws: ConfigError.
  void check() const;
};

/// Which of `count` items are in the validation set of each fold: those of nnU-Net, that is
/// sklearn's KFold(folds, shuffle=True, random_state=12345). `count` is `folds` or more.
std::vector<std::vector<std::size_t>> shuffled_folds(std::size_t count, std::size_t folds);

/// The images of a fold for train; for other splits, those held out. All images of a file (time
/// points, scenes) go together; files count in the order of their names. Throws: DataError with
/// fewer files than folds.
std::vector<Sample> of_fold(const FoldOptions& options, Split split, std::vector<Sample> all);

/// A data module whose training and validation are listed apart, as tables and folders of their
/// own are.
struct Parted {
  virtual ~Parted() = default;
  /// Of what items() lists. Throws: DataError for an image that is in both.
  virtual void expect_parts(const std::vector<Sample>& train,
                            const std::vector<Sample>& valid) const = 0;
};

/// The file that stands for the image of a sample: links are followed, and of a set of files that
/// are one image (OME-TIFF in several files, a NIfTI pair, a DICOM series) it is the same for all.
/// `looks`: as io::whole_of().
std::string file_of_image(const Sample& sample, bool looks = true);

/// The part of a split where the last `share` of the images is for validation. Samples of one image
/// stay together; at least one image is on each side, unless `share` is 0 or 1. An only image
/// trains and validates, with a warning. Throws: DataError where nothing is left.
std::vector<Sample> hold_out(std::vector<Sample> all,
                             double share,
                             Split split,
                             const std::string& path);

/// Throws: DataError that names an image that is in both, with what else may be done.
void expect_parted(const std::vector<Sample>& train,
                   const std::vector<Sample>& valid,
                   const std::string& advice = "");

}  // namespace cytra::data
