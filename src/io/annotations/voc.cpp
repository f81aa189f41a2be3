// Part of io/annotations/formats.h: Pascal VOC's XML. Source: its development kit's documentation
// (pixels are counted from 1, xmax and ymax included); detectron2.data.datasets.pascal_voc, which
// takes boxes in the same way.
#include <cstdlib>

#include "base/error.h"
#include "base/strings.h"
#include "io/annotations/formats.h"
#include "io/annotations/shapes.h"
#include "io/tiff/ome_xml.h"

namespace cytra::io {
namespace {

double voc_number(const std::string& path, const XmlElement& element) {
  const std::string text = trim(element.text);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0') return coordinate(path, value);
  throw DataError("{}: <{}> is '{}', expected a number", path, element.name, printable(text, 80));
}

}  // namespace

AnnotationFile parse_voc(const std::string& path, const std::string& bytes) {
  AnnotationFile file;
  ImageAnnotations& image = file.images.emplace_back();
  std::size_t at = 0;
  XmlElement element;
  bool is_voc = false, is_closed = false;
  int in_part = 0;  // of an object, as a person's head, which has a box and a name of its own
  Annotation object;
  bool in_object = false, in_box = false;
  int sides = 0;
  while (next_element(bytes, at, element)) {
    const std::string& name = element.name;
    if (name == "annotation") is_voc = true;
    if (name == "/annotation") is_closed = true;
    if (name == "part" || name == "/part") in_part += name[0] == '/' ? -1 : 1;
    if (in_part > 0) continue;
    if (name == "object") {
      object = {};
      in_object = true;
      sides = 0;
    } else if (name == "/object" && in_object) {
      in_object = false;
      if (sides != 15)
        throw DataError(
            "{}: the object '{}' has no whole <bndbox>, expected xmin, ymin, xmax and ymax",
            path,
            printable(object.class_name, 80));
      auto& [x0, y0, x1, y1] = object.box;
      x0 -= 1;
      y0 -= 1;
      if (x1 < x0 || y1 < y0)
        throw DataError(
            "{}: the object '{}' ends before it begins, expected xmin and ymin below xmax and ymax",
            path,
            printable(object.class_name, 80));
      object.parts.push_back({rectangle(object.box)});
      image.annotations.push_back(std::move(object));
    } else if (in_object && (name == "bndbox" || name == "/bndbox")) {
      in_box = name[0] != '/';
    } else if (in_object && name == "name") {
      object.class_name = trim(element.text);
    } else if (in_object && in_box) {
      static const char* const kSides[] = {"xmin", "ymin", "xmax", "ymax"};
      for (std::size_t k = 0; k < 4; ++k) {
        if (name != kSides[k]) continue;
        object.box[k] = voc_number(path, element);
        sides |= 1 << k;
      }
    } else if (!in_object && (name == "width" || name == "height")) {
      (name == "width" ? image.width : image.height) =
          static_cast<int64_t>(voc_number(path, element));
    }
  }
  if (!is_voc) throw DataError(path + ": no <annotation> in this XML, expected Pascal VOC's boxes");
  if (!is_closed || in_object)
    throw DataError(path + ": it ends too early, expected </annotation>; copy it again");
  return file;
}

}  // namespace cytra::io
