#pragma once
// What is written of segmented images, and which of them are done.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "pipelines/batch_segment/batch_segment.h"
#include "pipelines/job/done_record.h"

namespace cytra::pipelines {

/// Below a folder: masks/NAME.png, a label image (16 bit) for each image; objects/NAME/0001.png
/// ..., where asked for, a mask (0 and 255) for each object; segmented.jsonl, a line for each
/// image that is done, with its objects. A line is written after its image's files, so that a
/// process that is killed at any time leaves only complete images. finish() makes the tables of
/// all images from the lines.
class SegmentFiles {
 public:
  /// The settings of a view: all that results depend on but the image.
  using Settings = std::function<std::string(const std::string& view)>;
  /// The names of a view's classes from 0 on; empty: they have numbers alone.
  using ClassNames = std::function<std::vector<std::string>(const std::string& view)>;
  /// Reads what an earlier run with the same settings has left, and removes what a killed one left
  /// half-written. Throws: as AtomicFile.
  SegmentFiles(std::string folder,
               Settings settings,
               bool object_masks,
               ClassNames class_names = {});
  /// Whether an image of this content is done, and its files are as they were written. Thread:
  /// several at once.
  bool has(const SegmentInput& input, const std::string& content);
  /// Thread: several at once. Throws: as AtomicFile; DataError as SegmentedImage::labels().
  void write(const SegmentedImage& image);
  struct Totals {
    int64_t images = 0, objects = 0;
    int64_t empty = 0;  // objects of whose mask nothing is left
    int64_t most = 0;   // objects of the image that has most of them
    std::string most_in;
  };
  /// objects.csv, a row for each object, and instances.json, in COCO's format with run lengths and
  /// a category for each class (its id the class, unless views name it differently), for the
  /// inputs that this run has made, or found by has(), in their order. Throws: IoError when a line
  /// is missing, as AtomicFile.
  Totals finish(const std::vector<SegmentInput>& inputs);

 private:
  std::string stamp_of(const SegmentInput& input, const std::string& content) const;
  std::string label_path(const SegmentInput& input) const;
  std::string object_path(const SegmentInput& input, std::size_t number) const;  // from 0
  void prepare_folder(const std::string& path);

  const std::string folder_;
  const Settings settings_;
  const bool object_masks_;
  const ClassNames class_names_;
  mutable std::mutex mutex_;
  std::set<std::string> folders_;               // made; guarded by mutex_, as all that follows
  std::map<std::string, std::string> current_;  // name -> stamp of what this run has made or found
  DoneRecord record_;
};

}  // namespace cytra::pipelines
