#pragma once
// The files that `predict` writes for boxes, and which images are done.
#include <cstdint>
#include <string>
#include <vector>

#include "pipelines/detection/detector.h"
#include "pipelines/job/done_record.h"

namespace cytra::pipelines {

/// An image whose objects were found.
struct BoxedImage {
  std::string name;   // of its results
  std::string path;   // of the image
  std::string stamp;  // of all that its boxes depend on
};

/// detections.jsonl of a run's folder: a line for each image that is done, with its boxes. It is
/// written after the image's overlay, so that a process that is killed at any time leaves only
/// complete images. finish() makes the tables from it, and holds the boxes of one image at a time.
class BoxFiles {
 public:
  /// Reads what an earlier run has left, and removes what a killed one left half-written.
  /// Throws: as AtomicFile.
  /// `class_names`: of the classes; empty: numbers.
  BoxFiles(std::string folder, int64_t classes, std::vector<std::string> class_names, bool overlay);
  /// Whether the image was done with this stamp, and its overlay is there.
  bool has(const BoxedImage& image) const;
  /// `pixels`: (C,H,W). Throws: as AtomicFile.
  void add(const BoxedImage& image, const at::Tensor& pixels, const ops::Boxes& found);
  struct Tables {
    std::string csv, coco;
    int64_t objects = 0;
  };
  /// detections.csv and detections.json (COCO) of these images, each of which is done. Throws:
  /// IoError when a line is missing, as AtomicFile.
  Tables finish(const std::vector<BoxedImage>& images);

 private:
  const std::string folder_;
  const int64_t classes_;
  const std::vector<std::string> class_names_;
  const bool overlay_;
  DoneRecord record_;
};

}  // namespace cytra::pipelines
