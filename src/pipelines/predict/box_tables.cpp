#include "pipelines/predict/box_tables.h"

#include <cmath>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "io/csv.h"

namespace cytra::pipelines {

using config::Node;

std::string boxes_text(int64_t height, int64_t width, const ops::Boxes& found) {
  std::string boxes;
  for (int64_t i = 0; i < found.count(); ++i) {
    const float* const corners = found.corners.const_data_ptr<float>() + i * found.corners.size(1);
    boxes += fmt::format("{}[{},{},{}]",
                         boxes.empty() ? "" : ",",
                         fmt::join(corners, corners + found.corners.size(1), ","),
                         found.scores.const_data_ptr<float>()[i],
                         found.classes.const_data_ptr<int64_t>()[i]);
  }
  return fmt::format("{{\"height\":{},\"width\":{},\"boxes\":[{}]}}", height, width, boxes);
}

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

BoxTables::BoxTables(const std::string& csv,
                     const std::string& coco,
                     std::vector<std::string> names)
    : names_(std::move(names)), csv_(csv), coco_(coco) {
  csv_.write("image,x0,y0,x1,y1,score,class\n");
}

void BoxTables::add(const std::string& path, const Node& line) {
  expect_boxes(line);
  coco_.add_image(path, line.get<int64_t>("width"), line.get<int64_t>("height"));
  std::string rows;
  for (const Node& box : line.at("boxes").list) {
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

int64_t BoxTables::finish(int64_t classes) {
  for (int64_t k = 0; k < classes; ++k) coco_.add_class(k, name_of(k));
  csv_.commit();
  coco_.finish();
  return coco_.objects();
}

std::string BoxTables::name_of(int64_t k) const {
  const auto at = static_cast<std::size_t>(k);
  return at < names_.size() ? names_[at] : "";
}

}  // namespace cytra::pipelines
