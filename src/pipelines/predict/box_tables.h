#pragma once
// detections.csv and detections.json of a run of `predict`, and the lines that they are made of.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "config/node.h"
#include "io/objects/coco_writer.h"
#include "ops/boxes/boxes.h"

namespace cytra::pipelines {

/// The boxes of an image of `height` and `width` as JSON of a map, for a DoneRecord. Numbers are
/// the shortest that give the same float again.
std::string boxes_text(int64_t height, int64_t width, const ops::Boxes& found);
/// Throws: Error for a line that does not hold what boxes_text() says.
void expect_boxes(const config::Node& line);

/// The two tables, filled image by image; they hold the boxes of one at a time.
class BoxTables {
 public:
  /// `names`: of the classes; empty: numbers. Throws: as AtomicFile.
  BoxTables(const std::string& csv, const std::string& coco, std::vector<std::string> names);
  /// Throws: as expect_boxes().
  void add(const std::string& path, const config::Node& line);
  /// Returns how many boxes there are. Throws: as AtomicFile.
  int64_t finish(int64_t classes);

 private:
  std::string name_of(int64_t k) const;
  const std::vector<std::string> names_;
  AtomicFile csv_;
  io::CocoWriter coco_;
};

}  // namespace cytra::pipelines
