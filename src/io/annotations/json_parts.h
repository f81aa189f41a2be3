#pragma once
// The elements of GeoJSON and of labelme's JSON; for json.cpp alone.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/annotations/formats.h"
#include "io/annotations/json_place.h"

namespace cytra::io {

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

}  // namespace cytra::io
