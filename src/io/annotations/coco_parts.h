#pragma once
// The elements of COCO's JSON; for json.cpp alone.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/annotations/formats.h"
#include "io/annotations/json_place.h"

namespace cytra::io {

class CocoParts {
 public:
  explicit CocoParts(const std::string& path) : path_(path) {}
  void begin(const std::string& list) { lists_ |= list[0] == 'i' ? 1 : list[0] == 'a' ? 2 : 4; }
  bool is_begun() const { return (lists_ & 3) == 3; }
  /// Adds an element of a list; false for another list.
  bool add(const std::string& list, const Json& element);
  AnnotationFile finish();

 private:
  struct Category {
    double id = 0;
    std::string name, super;
    bool is_used = false;
  };
  void add_object(const Json& element);
  CocoRle mask_of(const JsonPlace& place, const Json& segmentation) const;
  void add_polygons(const JsonPlace& place, const Json& polygons, Annotation& object) const;
  const std::string& path_;
  int lists_ = 0;
  std::size_t images_ = 0, categories_ = 0;
  std::vector<std::pair<std::string, ImageAnnotations>> listed_;  // by their id
  struct Object {
    std::string image, category;
    Annotation annotation;
  };
  std::vector<Object> objects_;
  std::map<std::string, Category> names_;  // by their id
};

}  // namespace cytra::io
