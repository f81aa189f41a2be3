#pragma once
// Surveys a data set by reading every image once. Source of the reported facts: nnU-Net's dataset
// fingerprint and verify_dataset_integrity.
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/datamodule.h"

namespace cytra::data {

/// Facts about an image as LoadImaged returns it.
struct ImageFacts {
  std::string path;
  std::string error;                   // why it can't be used; the rest is empty then
  std::vector<int64_t> shape;          // C,[D,]H,W
  std::string dtype;                   // on file
  std::array<double, 3> spacing_um{};  // z, y, x; 0: unknown
  io::Geometry geometry;               // on file
  double min = 0, max = 0, mean = 0;
  bool is_whole = false;  // every value is a whole number
  bool is_grey = false;   // 3 or 4 channels without colours
  std::string file;       // the file without links, and what is selected in it
  std::string content;    // its shape and a fingerprint of its values
};

/// Counts of values, by the first 18 bits of their float32: whole numbers up to 1023 have separate
/// bins, other values are within 0.2 % of their bin's value.
struct Histogram {
  static constexpr std::size_t kBins = std::size_t{1} << 18;
  static std::size_t bin_of(float value);
  static float value_of(std::size_t bin);
  std::vector<uint64_t> counts = std::vector<uint64_t>(kBins);
  /// The value that a share (0 to 1) of all values does not exceed; 0 without values.
  double percentile(double share) const;
};

struct ClassFacts {
  int64_t value = 0;
  uint64_t voxels = 0, images = 0;
};

/// The images of one key in a split, in the order of items().
struct KeyFacts {
  std::vector<ImageFacts> images;
  Histogram histogram;
  std::vector<uint64_t> images_with = std::vector<uint64_t>(Histogram::kBins);
  /// The values of an image of labels: whole numbers between -1023 and 1023, 64 at most. Empty for
  /// other images.
  std::vector<ClassFacts> classes() const;
  std::size_t broken() const;
};

struct SplitFacts {
  Split split = Split::train;
  std::string error;  // why there are no samples
  std::vector<std::string> ids;
  /// What each sample is one of: its folder, and the words of a table ("class=cat").
  std::vector<std::vector<std::string>> groups;
  std::map<std::string, KeyFacts> keys;
};

struct Survey {
  std::vector<SplitFacts> splits;
  std::vector<std::string> problems;  // what must be corrected, a line each
  std::vector<std::string> misfits;   // problems of targets that are not on the grid of their
                                      // image
  std::vector<std::string> notes;     // what may be intended
};

/// The error with which a training would end at a sample, given its place among items_of(); "":
/// none. It is called for samples whose files are on different grids, since transforms may solve
/// that.
using Trial = std::function<std::string(Split split, std::size_t sample)>;

/// Reads train, valid and test (when there is one) on `threads` threads, each with one image in
/// memory. `progress` gets the number of images done and of all in the split, called by one thread
/// at a time.
Survey survey(const DataModule& module,
              int64_t threads,
              const std::function<void(Split split, int64_t done, int64_t all)>& progress,
              Trial trial = {});

/// Fills in problems and notes: broken images, labels that are not on the grid of their image,
/// channels, spacings and orientations that differ, images that occur twice or in two splits.
/// `on_error`: the loader's option; images that a training leaves out or replaces are a note.
void add_findings(Survey& survey, const Trial& trial = {}, const std::string& on_error = "fail");

}  // namespace cytra::data
