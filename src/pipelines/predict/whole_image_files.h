#pragma once
// The files that `predict` writes for classes or numbers of whole images, and which are done.
#include <functional>
#include <string>
#include <vector>

#include "io/image.h"
#include "pipelines/job/done_record.h"

namespace cytra::pipelines {

/// An image of which something is told.
struct WholeImage {
  std::string name;   // of its line in the record, and of its picture
  std::string path;   // of the image
  std::string stamp;  // of all that is told of it depends on
};

/// predictions.jsonl of a run's folder: a line for each image that is done, with its numbers, which
/// is written after the image's picture. finish() makes the table from it.
class WholeImageFiles {
 public:
  /// `pictures`: whether images have one. Throws: as AtomicFile.
  WholeImageFiles(std::string folder, bool pictures);
  /// The numbers, `count` of them, of an image that was done with this stamp; empty: it is not
  /// done.
  std::vector<double> find(const WholeImage& image, std::size_t count) const;
  /// `picture`: NAME_saliency.png; null: none. Throws: as AtomicFile.
  void add(const WholeImage& image,
           const std::vector<double>& numbers,
           const io::Image* picture = nullptr);
  /// Writes predictions.csv: "image" and `columns`, whose cells `cells_of` makes of an image's
  /// numbers. Returns its path. Throws: IoError when a line is missing, as AtomicFile.
  using CellsOf = std::function<std::vector<std::string>(const std::vector<double>& numbers)>;
  std::string finish(const std::vector<WholeImage>& images,
                     std::vector<std::string> columns,
                     std::size_t count,
                     const CellsOf& cells_of);

 private:
  const std::string folder_;
  const bool pictures_;
  DoneRecord record_;
};

}  // namespace cytra::pipelines
