#include "io/objects/coco_writer.h"

#include <fmt/format.h>

#include "config/json.h"

namespace cytra::io {
namespace {

std::string coco_text(const std::string& text) {
  return config::to_json(config::to_utf8(config::Node::make_string(text)));
}

}  // namespace

CocoWriter::CocoWriter(const std::string& path) : file_(path) {
  file_.write("{\"annotations\":[");
}

void CocoWriter::add_image(const std::string& file_name,
                           int64_t width,
                           int64_t height,
                           const std::vector<std::pair<std::string, std::string>>& more) {
  width_ = width;
  height_ = height;
  std::string text = fmt::format("\n{{\"id\":{},\"file_name\":{},\"width\":{},\"height\":{}",
                                 images_.size() + 1,
                                 coco_text(file_name),
                                 width,
                                 height);
  for (const auto& [key, value] : more) text += fmt::format(",\"{}\":{}", key, coco_text(value));
  images_.push_back(text + "}");
}

void CocoWriter::add_object(const Object& object) {
  const auto& [x0, y0, x1, y1] = object.box;
  const float width = x1 - x0, height = y1 - y0;
  std::string text = fmt::format(
      "{}\n{{\"id\":{},\"image_id\":{},\"category_id\":{},\"bbox\":[{},{},{},{}],\"score\":{},"
      "\"area\":{},\"iscrowd\":0",
      objects_ == 0 ? "" : ",",
      objects_ + 1,
      images_.size(),
      category_of(object.label, object.class_name),
      x0,
      y0,
      width,
      height,
      object.score,
      object.area < 0 ? fmt::to_string(width * height) : fmt::to_string(object.area));
  if (object.area >= 0) {
    text += fmt::format(",\"segmentation\":{{\"size\":[{},{}],\"counts\":{}}}",
                        height_,
                        width_,
                        coco_text(object.counts));
  }
  constexpr std::size_t kMostWaiting = 1 << 16;
  write(text + "}", kMostWaiting);
  ++objects_;
}

/// Writes text; up to `most` bytes are kept back.
void CocoWriter::write(const std::string& text, std::size_t most) {
  waiting_ += text;
  if (waiting_.size() <= most) return;
  file_.write(waiting_);
  waiting_.clear();
}

/// The class's number, or the next free one where another name has that.
int64_t CocoWriter::category_of(int64_t label, const std::string& class_name) {
  const std::string name = class_name.empty() ? fmt::format("class {}", label) : class_name;
  const auto [known, is_new] = ids_.try_emplace({label, name}, label);
  if (!is_new) return known->second;
  while (!categories_.try_emplace(known->second, name).second)
    known->second = categories_.rbegin()->first + 1;
  return known->second;
}

void CocoWriter::finish() {
  write("\n],\"images\":[", 0);
  for (std::size_t i = 0; i < images_.size(); ++i) file_.write((i == 0 ? "" : ",") + images_[i]);
  file_.write("\n],\"categories\":[");
  std::string separator;
  for (const auto& [id, name] : categories_) {
    file_.write(fmt::format("{}{{\"id\":{},\"name\":{}}}", separator, id, coco_text(name)));
    separator = ",";
  }
  file_.write("]}\n");
  file_.commit();
}

}  // namespace cytra::io
