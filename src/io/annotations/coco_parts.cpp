// Part of io/annotations/json_parts.h: the elements of COCO's JSON.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/annotations/json_parts.h"
#include "io/annotations/shapes.h"

namespace cytra::io {

bool CocoParts::add(const std::string& list, const Json& element) {
  if (list == "images") {
    const JsonPlace place{path_, "images", images_++};
    ImageAnnotations image;
    image.image = place.text_of(element, "file_name");
    if (image.image.empty()) place.refuse("no file_name, expected the image's");
    const auto side = [&](const char* key) {
      const Json* value = place.find(element, key);
      return value == nullptr ? 0 : std::llround(place.number(*value, key));
    };
    image.height = side("height");
    image.width = side("width");
    listed_.emplace_back(place.text_of(element, "id"), std::move(image));
  } else if (list == "categories") {
    const JsonPlace place{path_, "categories", categories_++};
    Category category;
    const Json* id = place.find(element, "id");
    if (id != nullptr && id->is_number()) category.id = id->get<double>();
    category.name = place.text_of(element, "name");
    category.super = place.text_of(element, "supercategory");
    if (category.name.empty()) place.refuse("no name, expected the class's");
    names_[place.text_of(element, "id")] = std::move(category);
  } else if (list == "annotations") {
    add_object(element);
  } else {
    return false;
  }
  return true;
}

void CocoParts::add_object(const Json& element) {
  const JsonPlace place{path_, "annotations", objects_.size()};
  Object object;
  object.image = place.text_of(element, "image_id");
  object.category = place.text_of(element, "category_id");
  Annotation& annotation = object.annotation;
  if (const Json* crowd = place.find(element, "iscrowd"))
    annotation.is_crowd = place.number(*crowd, "iscrowd") != 0;
  const Json* segmentation = place.find(element, "segmentation");
  if (segmentation != nullptr && segmentation->is_object()) {
    annotation.masks.push_back(mask_of(place, *segmentation));
  } else if (segmentation != nullptr && segmentation->is_array()) {
    add_polygons(place, *segmentation, annotation);
  } else if (segmentation != nullptr) {
    place.refuse("segmentation of another kind, expected polygons or run lengths");
  }
  const Json* box = place.find(element, "bbox");
  if (box != nullptr && !box->empty()) {
    if (!box->is_array() || box->size() != 4)
      place.refuse("bbox is not a list of 4 numbers, expected [x, y, width, height]");
    for (std::size_t k = 0; k < 4; ++k) annotation.box[k] = place.number((*box)[k], "bbox");
    if (annotation.box[2] < 0 || annotation.box[3] < 0)
      place.refuse("bbox has a negative width or height, expected [x, y, width, height]");
    annotation.box[2] += annotation.box[0];
    annotation.box[3] += annotation.box[1];
  } else if (annotation.parts.empty() && annotation.masks.empty()) {
    place.refuse("neither segmentation nor bbox, expected one of them");
  } else {
    annotation.box = box_around(annotation);
  }
  objects_.push_back(std::move(object));
}

void CocoParts::add_polygons(const JsonPlace& place,
                             const Json& polygons,
                             Annotation& object) const {
  for (const Json& polygon : polygons) {
    if (!polygon.is_array() || polygon.size() % 2 != 0)
      place.refuse("a polygon that is not a list of pairs, expected [x, y, x, y, ...]");
    Ring ring;
    for (std::size_t i = 0; i < polygon.size(); i += 2)
      ring.push_back({place.number(polygon[i], "x"), place.number(polygon[i + 1], "y")});
    if (ring.size() > 1) object.parts.push_back({std::move(ring)});
  }
}

CocoRle CocoParts::mask_of(const JsonPlace& place, const Json& segmentation) const {
  const Json* size = place.find(segmentation, "size");
  const Json* counts = place.find(segmentation, "counts");
  if (size == nullptr || !size->is_array() || size->size() != 2 || counts == nullptr)
    place.refuse("segmentation is a map, expected one with size and counts");
  const auto height = std::llround(place.number((*size)[0], "size")),
             width = std::llround(place.number((*size)[1], "size"));
  if (height < 1 || width < 1 || height > UINT32_MAX / width)
    place.refuse(
        fmt::format("run lengths of {} x {} pixels, expected an image's size", height, width));
  try {
    if (counts->is_string()) return parse_rle(counts->get_ref<const std::string&>(), height, width);
  } catch (const DataError& error) {
    place.refuse(std::string(error.what()) + ", expected those of pycocotools");
  }
  if (!counts->is_array()) place.refuse("counts of another kind, expected text or numbers");
  CocoRle rle{height, width, {}};
  int64_t sum = 0;
  for (const Json& count : *counts) {
    const bool fits = count.is_number_integer() && count.get<int64_t>() >= 0 &&
                      count.get<int64_t>() <= height * width - sum;
    if (!fits) place.refuse("counts beyond the mask, expected runs of its pixels");
    sum += count.get<int64_t>();
    rle.counts.push_back(count.get<uint32_t>());
  }
  if (sum != height * width)
    place.refuse(fmt::format("counts of {} pixels, expected {}", sum, height * width));
  return rle;
}

AnnotationFile CocoParts::finish() {
  AnnotationFile file;
  file.are_many = file.is_coco = true;
  file.is_ordered = true;
  std::map<std::string, std::size_t> place_of;
  for (auto& [id, image] : listed_) {
    place_of[id] = file.images.size();
    file.by_name[last_name(image.image)].push_back(file.images.size());
    file.images.push_back(std::move(image));
  }
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    const JsonPlace place{path_, "annotations", i};
    Object& object = objects_[i];
    const auto image = place_of.find(object.image);
    if (image == place_of.end())
      place.refuse(fmt::format("image_id is {}, expected the id of one of images",
                               printable(object.image, 40)));
    const auto category = names_.find(object.category);
    if (category != names_.end()) {
      category->second.is_used = true;
      object.annotation.class_name = category->second.name;
    } else if (!names_.empty()) {
      place.refuse(fmt::format("category_id is {}, expected the id of one of categories",
                               printable(object.category, 40)));
    } else {
      object.annotation.class_name = object.category;
    }
    file.images[image->second].annotations.push_back(std::move(object.annotation));
  }
  std::vector<Category> all;
  std::set<std::string> supers;
  for (const auto& [id, category] : names_) {
    all.push_back(category);
    if (category.super != category.name) supers.insert(category.super);
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const Category& category : all) {
    // A category that only groups others, such as Roboflow's first one, is no class.
    if (!category.is_used && supers.count(category.name) > 0) continue;
    if (!contains(file.classes, category.name)) file.classes.push_back(category.name);
  }
  if (names_.empty()) file.is_ordered = false;
  return file;
}

}  // namespace cytra::io
