#include "data/datamodules/folds.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "base/error.h"
#include "base/warn_once.h"
#include "io/image_folder.h"

namespace cytra::data {
namespace {

/// The source of the image that names the sample; null for an image in memory.
const Source* image_source(const Sample& sample) {
  const Source* first = nullptr;
  for (const auto& [key, source] : sample.sources) {
    if (source.path == sample.id) return &source;
    if (first == nullptr) first = &source;
  }
  return first;
}

std::vector<std::string> files_of_images(const std::vector<Sample>& samples) {
  std::vector<std::string> files;
  for (const Sample& sample : samples)
    files.push_back(file_of_image(sample, samples.size() <= io::kLookedInto));
  return files;
}

/// A number for each sample, equal for samples of one image.
std::vector<std::size_t> groups_of(const std::vector<Sample>& samples) {
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> groups;
  for (std::string& file : files_of_images(samples))
    groups.push_back(known.emplace(std::move(file), known.size()).first->second);
  if (known.size() > 1 || samples.size() < 2) return groups;
  // All samples are of one file or series: only its time points, or planes, can be separated.
  warn_once(fmt::format(
      "{}: all {} images are of this file or series: training and validation have other parts of "
      "it, which are alike",
      samples[0].id,
      samples.size()));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = i;
  return groups;
}

}  // namespace

void FoldOptions::check() const {
  if (!folds && fold != 0)
    throw ConfigError("fold: {}, but folds is null; set it, e.g. to 5", fold);
  if (folds && fold >= *folds)
    throw ConfigError("fold: {}, expected 0 to {}: folds is {}", fold, *folds - 1, *folds);
}

// The shuffle follows numpy's RandomState.
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
    std::ranges::sort(parts[fold]);
    from = to;
  }
  return parts;
}

std::vector<Sample> of_fold(const FoldOptions& options, Split split, std::vector<Sample> all) {
  const std::vector<std::string> names = files_of_images(all);
  std::vector<std::string> files = names;
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  const auto folds = static_cast<std::size_t>(options.folds.value());
  if (files.size() < folds) {
    throw DataError(
        "data.folds: {}, but there are {} images; expected as many at least", folds, files.size());
  }
  const std::vector<std::size_t> held_out =
      shuffled_folds(files.size(), folds)[static_cast<std::size_t>(options.fold)];
  std::vector<Sample> kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto file = std::ranges::lower_bound(files, names[i]) - files.begin();
    const bool is_held_out = std::ranges::binary_search(held_out, static_cast<std::size_t>(file));
    if (is_held_out != (split == Split::train)) kept.push_back(std::move(all[i]));
  }
  return kept;
}

std::string file_of_image(const Sample& sample, bool looks) {
  const Source* source = image_source(sample);
  if (source == nullptr) return sample.id;
  const std::string whole = io::whole_of(source->path, looks);
  std::error_code error;
  const auto path = std::filesystem::canonical(whole, error);
  return error ? whole : path.string();
}

std::vector<Sample> hold_out(std::vector<Sample> all,
                             double share,
                             Split split,
                             const std::string& path) {
  if (split == Split::predict) return all;
  if (all.size() == 1 && share > 0 && share < 1) {
    warn_once(fmt::format(
        "{}: the only image, so validation has the same: its scores say nothing of other images; "
        "cut the image in two, or label another",
        all[0].id));
    return all;
  }
  const std::vector<std::size_t> groups = groups_of(all);
  const std::size_t count = groups.empty() ? 0 : *std::ranges::max_element(groups) + 1;
  auto held_out = static_cast<std::size_t>(std::lround(static_cast<double>(count) * share));
  if (share > 0 && share < 1 && count > 1)
    held_out = std::clamp<std::size_t>(held_out, 1, count - 1);
  std::vector<Sample> kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_train = groups[i] + held_out < count;
    if (is_train == (split == Split::train)) kept.push_back(std::move(all[i]));
  }
  if (kept.empty()) {
    throw DataError("{}: no images are left for {}; change data.valid_fraction{}",
                    path,
                    name_of(split),
                    split == Split::valid ? ", or train without: trainer.limit_val_batches=0" : "");
  }
  return kept;
}

void expect_parted(const std::vector<Sample>& train,
                   const std::vector<Sample>& valid,
                   const std::string& advice) {
  using SceneTime = std::pair<int64_t, int64_t>;  // scene, time point; -1: any
  std::map<std::string, std::vector<SceneTime>> trained;
  const auto scene_time = [](const Sample& sample) {
    const Source* source = image_source(sample);
    return SceneTime{source->selection.scene, source->selection.timepoint};
  };
  const bool looks = train.size() + valid.size() <= io::kLookedInto;
  for (const Sample& sample : train) {
    if (!sample.sources.empty())
      trained[file_of_image(sample, looks)].push_back(scene_time(sample));
  }
  std::vector<std::string> shared;
  for (const Sample& sample : valid) {
    if (sample.sources.empty()) continue;
    const auto found = trained.find(file_of_image(sample, looks));
    if (found == trained.end()) continue;
    const SceneTime own = scene_time(sample);
    const auto meets = [](int64_t a, int64_t b) { return a == b || a < 0 || b < 0; };
    if (std::ranges::any_of(found->second, [&](const SceneTime& other) {
          return meets(own.first, other.first) && meets(own.second, other.second);
        }))
      shared.push_back(sample.id);
  }
  if (shared.empty()) return;
  throw DataError(
      "{}: this image is for training and for validation{}, expected each in one of them, or the "
      "scores say nothing of other images; leave it out of one{}",
      shared[0],
      shared.size() == 1 ? "" : fmt::format(", as {} others", shared.size() - 1),
      advice);
}

}  // namespace cytra::data
