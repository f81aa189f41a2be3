#pragma once
// The elements of COCO's JSON, of GeoJSON and of labelme's JSON; for json.cpp alone.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/annotations/formats.h"

namespace cytra::io {

using Json = nlohmann::json;

/// The place of a value, for messages.
struct JsonPlace {
  const std::string& path;
  const char* list;
  std::size_t index;
  std::string text() const;
  [[noreturn]] void refuse(const std::string& what) const;
  double number(const Json& value, const char* what) const;
  /// The value of a key; null where it is missing or null.
  const Json* find(const Json& object, const char* key) const;
  /// The text of a key; "" where it is missing or null.
  std::string text_of(const Json& object, const char* key) const;
};

class GeoJsonParts {
 public:
  explicit GeoJsonParts(const std::string& path) : path_(path) {}
  void add(const Json& feature);
  /// Adds a file of one feature or geometry; false for another file.
  bool add_root(const Json& root);
  AnnotationFile finish();

 private:
  bool add_geometry(const JsonPlace& place, const Json& geometry, Annotation& object, int depth);
  const std::string& path_;
  std::vector<Annotation> objects_;
  std::size_t count_ = 0, left_out_ = 0;
};

class LabelmeParts {
 public:
  explicit LabelmeParts(const std::string& path) : path_(path) {}
  void add(const Json& shape);
  AnnotationFile finish(const Json& root);

 private:
  const std::string& path_;
  std::vector<Annotation> objects_;
  std::map<std::pair<std::string, std::string>, std::size_t> groups_;
  std::size_t count_ = 0, left_out_ = 0;
};

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
