#pragma once
// Objects of many images in COCO's format. Source: cocodataset.org, "Data format"; pycocotools.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"

namespace cytra::io {

/// Writes one JSON file, image by image; it appears whole by finish().
class CocoWriter {
 public:
  /// Begins the file. This and the other functions throw what AtomicFile throws.
  explicit CocoWriter(const std::string& path);
  /// Adds an image. `more`: further texts about it, by key. The objects that follow belong to it.
  void add_image(const std::string& file_name,
                 int64_t width,
                 int64_t height,
                 const std::vector<std::pair<std::string, std::string>>& more = {});
  struct Object {
    std::array<float, 4> box{};  // x0, y0, x1, y1
    float score = 0;
    int64_t label = 0;
    std::string class_name;  // "": "class LABEL"
    int64_t area = -1;       // pixels of its mask; -1: it has none, and the box's area is written
    std::string counts;      // of the mask, as CocoRle::text()
  };
  void add_object(const Object& object);
  /// Adds a class, also where no object is of it.
  void add_class(int64_t label, const std::string& class_name) { category_of(label, class_name); }
  void finish();
  int64_t images() const { return std::ssize(images_); }
  int64_t objects() const { return objects_; }

 private:
  int64_t category_of(int64_t label, const std::string& class_name);
  void write(const std::string& text, std::size_t most);
  AtomicFile file_;
  std::string waiting_;  // to be written
  std::vector<std::string> images_;
  int64_t width_ = 0, height_ = 0;                          // of the last image
  std::map<std::pair<int64_t, std::string>, int64_t> ids_;  // by label and name
  std::map<int64_t, std::string> categories_;               // names by id
  int64_t objects_ = 0;
};

}  // namespace cytra::io
