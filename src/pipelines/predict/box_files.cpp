#include "pipelines/predict/box_files.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "inference/outputs/draw_overlay.h"
#include "io/csv.h"
#include "io/objects/coco_writer.h"
#include "io/png/write.h"

namespace cytra::pipelines {
namespace {

using config::Node;

/// Numbers are the shortest that give the same float again.
std::string boxes_text(const at::Tensor& pixels, const ops::Boxes& found) {
  std::string boxes;
  for (int64_t i = 0; i < found.count(); ++i) {
    const float* const corners = found.corners.const_data_ptr<float>() + i * found.corners.size(1);
    boxes += fmt::format("{}[{},{},{}]",
                         boxes.empty() ? "" : ",",
                         fmt::join(corners, corners + found.corners.size(1), ","),
                         found.scores.const_data_ptr<float>()[i],
                         found.classes.const_data_ptr<int64_t>()[i]);
  }
  return fmt::format(
      "{{\"height\":{},\"width\":{},\"boxes\":[{}]}}", pixels.size(1), pixels.size(2), boxes);
}

/// Throws: Error for a line that says something else.
void expect_boxes(const Node& line) {
  const auto is_side = [&](const char* side) {
    return line.get<int64_t>(side) >= 1 && line.get<int64_t>(side) <= INT32_MAX;
  };
  bool is_right = is_side("height") && is_side("width");
  const Node& boxes = line.at("boxes");
  is_right = is_right && boxes.kind == config::Kind::list;
  for (const Node& box : boxes.list) {
    is_right = is_right && box.kind == config::Kind::list && box.list.size() == 6 &&
               box.list[5].as<int64_t>() >= 0;
    for (const Node& value : box.list)
      is_right = is_right && std::abs(value.as<double>()) <= INT32_MAX;
  }
  if (!is_right) throw DataError("detections.jsonl: a line that predict did not write");
}

void draw_boxes(const std::string& path, const at::Tensor& image, const ops::Boxes& found) {
  const int64_t height = image.size(1), width = image.size(2);
  const at::Tensor labels = at::zeros({height, width}, at::kInt);
  for (int64_t i = found.count(); i-- > 0;) {  // the best ones on top
    const float* const corners = found.corners.const_data_ptr<float>() + 4 * i;
    const auto side = [&](int64_t k, int64_t most) {
      return std::clamp<int64_t>(std::lround(corners[k]), 0, most);
    };
    labels.slice(0, side(1, height), side(3, height))
        .slice(1, side(0, width), side(2, width))
        .fill_(i + 1);
  }
  io::write_png(path, inference::draw_overlay(image.to(at::kFloat), labels));
}

/// The two tables, as they are filled.
class BoxTables {
 public:
  BoxTables(const std::string& csv, const std::string& coco, const std::vector<std::string>& names)
      : names_(names), csv_(csv), coco_(coco) {
    csv_.write("image,x0,y0,x1,y1,score,class\n");
  }
  void add(const std::string& path, const Node& image) {
    expect_boxes(image);
    coco_.add_image(path, image.get<int64_t>("width"), image.get<int64_t>("height"));
    std::string rows;
    for (const Node& box : image.at("boxes").list) {
      io::CocoWriter::Object object;
      std::vector<std::string> row{io::safe_cell(path)};
      for (std::size_t i = 0; i < 5; ++i) {
        const auto value = static_cast<float>(box.list.at(i).as<double>());
        (i < 4 ? object.box.at(i) : object.score) = value;
        row.push_back(fmt::to_string(value));
      }
      object.label = box.list.at(5).as<int64_t>();
      object.class_name = name_of(object.label);
      row.push_back(io::safe_cell(object.class_name.empty() ? std::to_string(object.label)
                                                            : object.class_name));
      io::append_row(row, ',', rows);
      coco_.add_object(object);
    }
    csv_.write(rows);
  }
  int64_t finish(int64_t classes) {
    for (int64_t k = 0; k < classes; ++k) coco_.add_class(k, name_of(k));
    csv_.commit();
    coco_.finish();
    return coco_.objects();
  }

 private:
  std::string name_of(int64_t k) const {
    const auto at = static_cast<std::size_t>(k);
    return at < names_.size() ? names_[at] : "";
  }
  const std::vector<std::string>& names_;
  AtomicFile csv_;
  io::CocoWriter coco_;
};

}  // namespace

BoxFiles::BoxFiles(std::string folder,
                   int64_t classes,
                   std::vector<std::string> class_names,
                   bool overlay)
    : folder_(std::move(folder)),
      classes_(classes),
      class_names_(std::move(class_names)),
      overlay_(overlay),
      record_(folder_, "detections") {}

bool BoxFiles::has(const BoxedImage& image) const {
  const bool is_there = overlay_ ? record_.find(image.name, image.stamp).has_value()
                                 : record_.has(image.name, image.stamp);
  if (!is_there) return false;
  try {
    expect_boxes(record_.line(image.name, image.stamp, image.path));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void BoxFiles::add(const BoxedImage& image, const at::Tensor& pixels, const ops::Boxes& found) {
  inference::ResultFiles files;
  if (overlay_) {
    files = {{"overlay", folder_ + "/" + image.name + "_overlay.png"}};
    draw_boxes(files[0].second, pixels, found);
  }
  record_.remove_outdated(image.name, files);
  record_.add({image.name, image.path, image.stamp, files, boxes_text(pixels, found)});
}

BoxFiles::Tables BoxFiles::finish(const std::vector<BoxedImage>& images) {
  record_.read();
  Tables tables{folder_ + "/detections.csv", folder_ + "/detections.json"};
  BoxTables files(tables.csv, tables.coco, class_names_);
  for (const BoxedImage& image : images)
    files.add(image.path, record_.line(image.name, image.stamp, image.path));
  tables.objects = files.finish(classes_);
  return tables;
}

}  // namespace cytra::pipelines
