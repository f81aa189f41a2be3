#include "data/folds.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "base/error.h"

namespace cytra::data {

void FoldOptions::check() const {
  if (!folds && fold != 0)
    throw ConfigError(fmt::format("fold: {}, but folds is null; set it, e.g. to 5", fold));
  if (folds && fold >= *folds)
    throw ConfigError(
        fmt::format("fold: {}, expected 0 to {}: folds is {}", fold, *folds - 1, *folds));
}

// The shuffle is that of numpy's RandomState.
std::vector<std::vector<std::size_t>> shuffled_folds(std::size_t count, std::size_t folds) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(12345);
  for (std::size_t i = count - 1; i > 0; --i) {
    std::size_t mask = i, drawn;
    for (const int shift : {1, 2, 4, 8, 16}) mask |= mask >> shift;
    do drawn = random() & mask;
    while (drawn > i);
    std::swap(order[i], order[drawn]);
  }
  std::vector<std::vector<std::size_t>> parts(folds);
  auto from = order.begin();
  for (std::size_t fold = 0; fold < folds; ++fold) {
    const auto to =
        from + static_cast<std::ptrdiff_t>(count / folds + (fold < count % folds ? 1 : 0));
    parts[fold].assign(from, to);
    std::sort(parts[fold].begin(), parts[fold].end());
    from = to;
  }
  return parts;
}

std::vector<Sample> of_fold(const FoldOptions& options, Split split, std::vector<Sample> all) {
  std::vector<std::string> files;
  for (const Sample& sample : all) files.push_back(sample.id);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  const auto folds = static_cast<std::size_t>(options.folds.value());
  if (files.size() < folds) {
    throw DataError(fmt::format(
        "data.folds: {}, but there are {} images; expected as many at least", folds, files.size()));
  }
  const std::vector<std::size_t> held_out =
      shuffled_folds(files.size(), folds)[static_cast<std::size_t>(options.fold)];
  const auto is_left = [&](const Sample& sample) {
    const auto file = std::lower_bound(files.begin(), files.end(), sample.id) - files.begin();
    return std::binary_search(held_out.begin(), held_out.end(), static_cast<std::size_t>(file)) ==
           (split == Split::train);
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_left), all.end());
  return all;
}

}  // namespace cytra::data
