#pragma once
// Splits a data set: by shares, or into the folds of cross-validation, each of which is the
// validation set once. Samples of one image stay together.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/datamodule.h"

namespace cytra::data {

/// Keys of data modules whose images can be split.
struct FoldOptions {
  std::optional<int64_t> folds;
  int64_t fold = 0;
  void visit(auto& v) {
    v("folds",
      folds,
      "cross-validation: the images of train and valid together, in so many parts; null: none",
      2,
      1e6);
    v("fold", fold, "the part for validation, from 0", 0, 1e6);
  }
  /// Checks the options. Throws: ConfigError.
  void check() const;
};

/// The items, of `count`, in the validation set of each fold. The folds are those of nnU-Net, that
/// is sklearn's KFold(folds, shuffle=True, random_state=12345). `count` is `folds` or more.
std::vector<std::vector<std::size_t>> shuffled_folds(std::size_t count, std::size_t folds);

/// The images of a fold for train; for other splits, those held out. All images of a file (time
/// points, scenes) stay together; files are ordered by name. Throws: DataError with fewer files
/// than folds.
std::vector<Sample> of_fold(const FoldOptions& options, Split split, std::vector<Sample> all);

/// A data module whose training and validation are listed separately, in their own tables or
/// folders.
struct Parted {
  virtual ~Parted() = default;
  /// Checks the samples of items(). Throws: DataError for an image that is in both.
  virtual void expect_parts(const std::vector<Sample>& train,
                            const std::vector<Sample>& valid) const = 0;
};

/// The file that identifies the image of a sample: links are followed, and it is equal for all
/// files of one image (OME-TIFF in several files, a NIfTI pair, a DICOM series). `looks`: as for
/// io::whole_of().
std::string file_of_image(const Sample& sample, bool looks = true);

/// The samples of a split, where the last `share` of the images is for validation. Samples of one
/// image stay together; each side has at least one image, unless `share` is 0 or 1. A single image
/// is used for both, with a warning. Throws: DataError where nothing is left.
std::vector<Sample> hold_out(std::vector<Sample> all,
                             double share,
                             Split split,
                             const std::string& path);

/// Throws: DataError that names an image that is in both, with alternatives.
void expect_parted(const std::vector<Sample>& train,
                   const std::vector<Sample>& valid,
                   const std::string& advice = "");

}  // namespace cytra::data
