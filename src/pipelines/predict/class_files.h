#pragma once
// The table that `predict` writes for classes of whole images, and which images are done.
#include <string>
#include <vector>

#include "pipelines/job/done_record.h"

namespace cytra::pipelines {

/// An image whose class was told.
struct ClassifiedImage {
  std::string name;   // of its line in the record
  std::string path;   // of the image
  std::string stamp;  // of all that its class depends on
};

/// classes.jsonl of a run's folder: a line for each image that is done, with the probability of
/// each class. finish() makes the table from it.
class ClassFiles {
 public:
  /// `names`: of the classes 0, 1, ... Throws: as AtomicFile.
  ClassFiles(std::string folder, std::vector<std::string> names);
  /// The probabilities of an image that was done with this stamp; empty: it is not done.
  std::vector<double> find(const ClassifiedImage& image) const;
  /// Throws: as AtomicFile.
  void add(const ClassifiedImage& image, const std::vector<double>& probabilities);
  /// Writes classes.csv (image, class, probability_NAME ...) of these images, each of which is
  /// done. Returns its path. Throws: IoError when a line is missing, as AtomicFile.
  std::string finish(const std::vector<ClassifiedImage>& images);

 private:
  const std::string folder_;
  const std::vector<std::string> names_;
  DoneRecord record_;
};

}  // namespace cytra::pipelines
