#pragma once
// Cross-validation: the parts of a data set that take turns as its validation set.
#include <cstdint>
#include <optional>
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

}  // namespace cytra::data
