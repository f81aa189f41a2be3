// Part of io/annotations/formats.h: CVAT's XML for images, version 1.1, one file for all of them.
// Source: its documentation, "CVAT for images"; corners are in pixels from the image's corner, a
// mask is runs outside and inside, row by row, of its rectangle.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "base/error.h"
#include "base/strings.h"
#include "io/annotations/formats.h"
#include "io/annotations/shapes.h"
#include "io/tiff/ome_xml.h"

namespace cytra::io {
namespace {

class CvatShape {
 public:
  CvatShape(const std::string& path, const XmlElement& element) : path_(path), element_(element) {}

  double number(const char* key) const { return number_in(text(key)); }
  std::string text(const char* key) const {
    const auto found = element_.attributes.find(key);
    if (found != element_.attributes.end()) return found->second;
    throw DataError("{}: <{}> has no '{}'", path_, element_.name, key);
  }

  /// The outlines; none for points, lines and tags, which have no area.
  std::vector<std::vector<Ring>> parts() const {
    if (element_.name == "polygon") return {{polygon()}};
    if (element_.name == "box") return {{turned_box()}};
    if (element_.name == "mask") return mask();
    if (element_.name != "ellipse") return {};
    return {{ellipse({number("cx"), number("cy")}, {number("rx"), 0}, {0, number("ry")})}};
  }

 private:
  double number_in(const std::string& given) const {
    const std::string text = trim(given);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0') return coordinate(path_, value);
    throw DataError(
        "{}: <{}> has '{}', expected a number", path_, element_.name, printable(text, 80));
  }
  Ring polygon() const {
    Ring ring;
    for (const std::string& point : split(text("points"), ';')) {
      const std::vector<std::string> xy = split(point, ',');
      if (xy.size() != 2)
        throw DataError("{}: a point is '{}', expected x,y", path_, printable(point, 80));
      ring.push_back({number_in(xy[0]), number_in(xy[1])});
    }
    return ring;
  }
  Ring turned_box() const {
    Ring ring = rectangle({number("xtl"), number("ytl"), number("xbr"), number("ybr")});
    if (element_.attributes.count("rotation") == 0) return ring;
    const double angle = number("rotation") * std::numbers::pi / 180;
    const double x0 = (number("xtl") + number("xbr")) / 2, y0 = (number("ytl") + number("ybr")) / 2;
    for (auto& [x, y] : ring) {
      const double right = x - x0, down = y - y0;
      x = x0 + right * std::cos(angle) - down * std::sin(angle);
      y = y0 + right * std::sin(angle) + down * std::cos(angle);
    }
    return ring;
  }
  std::vector<std::vector<Ring>> mask() const {
    const double left = number("left"), top = number("top"), width = number("width");
    std::vector<std::vector<Ring>> rows;
    double at = 0;
    bool is_inside = false;
    for (const std::string& text : split(text("rle"), ',')) {
      const double end = at + number_in(text);
      if (width < 1 || end < at || end > width * number("height"))
        throw DataError(path_ + ": a <mask> has more pixels than its rectangle");
      for (; is_inside && at < end; at = std::min(end, (std::floor(at / width) + 1) * width)) {
        const double y = top + std::floor(at / width), x = left + std::fmod(at, width);
        rows.push_back({rectangle({x, y, std::min(x + end - at, left + width), y + 1})});
      }
      at = end;
      is_inside = !is_inside;
    }
    return rows;
  }

  const std::string& path_;
  const XmlElement& element_;
};

}  // namespace

AnnotationFile parse_cvat(const std::string& path, const std::string& bytes) {
  AnnotationFile file;
  file.are_many = true;
  std::size_t at = 0;
  XmlElement element;
  bool is_closed = false, in_image = false;
  std::vector<std::pair<double, Annotation>> shapes;  // an image's, with their order of depth
  while (next_element(bytes, at, element)) {
    const CvatShape shape(path, element);
    is_closed = is_closed || element.name == "/annotations";
    if (element.name == "image" || element.name == "/image" || is_closed) {
      std::ranges::stable_sort(shapes, {}, &std::pair<double, Annotation>::first);
      for (auto& [depth, object] : shapes)
        file.images.back().annotations.push_back(std::move(object));
      shapes.clear();
      in_image = element.name == "image";
    }
    if (element.name == "track")
      throw DataError(path + ": <track> of a video, expected CVAT's export for images");
    if (element.name == "image") {
      ImageAnnotations& image = file.images.emplace_back();
      image.image = shape.text("name");
      image.width = static_cast<int64_t>(shape.number("width"));
      image.height = static_cast<int64_t>(shape.number("height"));
      file.by_name[last_name(image.image)].push_back(file.images.size() - 1);
    } else if (in_image && element.attributes.count("label") > 0 && element.name != "tag") {
      Annotation object;
      object.class_name = shape.text("label");
      object.parts = shape.parts();
      if (object.parts.empty()) {
        ++file.without_area;
        continue;
      }
      object.box = box_around(object);
      shapes.emplace_back(element.attributes.count("z_order") > 0 ? shape.number("z_order") : 0,
                          std::move(object));
    }
  }
  if (!is_closed)
    throw DataError(path + ": it ends too early, expected </annotations>; copy it again");
  return file;
}

}  // namespace cytra::io
