#include "pipelines/batch_segment/files.h"

#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "config/json.h"
#include "io/csv.h"
#include "io/fingerprint.h"
#include "io/objects/coco_writer.h"

namespace cytra::pipelines {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// What the record keeps.
std::string text_of(const SegmentedImage& image) {
  std::vector<Node> objects;
  for (const SegmentedObject& object : image.objects) {
    Node node = Node::make_map();
    node.set("box", Node::make_list(std::vector<double>(object.box.begin(), object.box.end())));
    node.set("score", Node::make_real(object.score));
    node.set("class", Node::make_integer(object.label));
    node.set("counts", Node::make_string(object.mask.text()));
    objects.push_back(std::move(node));
  }
  Node node = Node::make_map();
  node.set("view", Node::make_string(image.input.view));
  node.set("height", Node::make_integer(image.height));
  node.set("width", Node::make_integer(image.width));
  node.set("objects", Node::make_list(std::move(objects)));
  return config::to_json(config::to_utf8(node));
}

/// What a line of the record says of an object.
struct KeptObject {
  std::array<double, 4> box{};  // x0, y0, x1, y1
  double score = 0;
  int64_t label = 0;
  std::string counts;
  io::CocoRle mask;
};
struct KeptImage {
  int64_t height = 0, width = 0;
  std::vector<KeptObject> objects;
};

/// Throws: Error for a line that says something else.
KeptImage kept_image(const Node& line) {
  KeptImage image{line.get<int64_t>("height"), line.get<int64_t>("width"), {}};
  const auto expect = [](bool is_right) {
    if (!is_right) throw DataError("segmented.jsonl: a line that batch_segment did not write");
  };
  const auto is_side = [](int64_t side) { return side >= 1 && side <= INT32_MAX; };
  expect(is_side(image.height) && is_side(image.width));
  const Node& objects = line.at("objects");
  expect(objects.kind == config::Kind::list);
  for (const Node& one : objects.list) {
    KeptObject& object = image.objects.emplace_back();
    const auto box = one.get<std::vector<double>>("box");
    object.score = one.get<double>("score");
    object.label = one.get<int64_t>("class");
    object.counts = one.get<std::string>("counts");
    expect(box.size() == object.box.size() && std::isfinite(object.score) && object.label >= 0);
    for (std::size_t i = 0; i < box.size(); ++i) {
      expect(std::abs(box[i]) <= INT32_MAX);
      object.box[i] = box[i];
    }
    object.mask = io::parse_rle(object.counts, image.height, image.width);
  }
  return image;
}

/// Removes the files of object masks; a folder in it belongs to another image.
void remove_object_masks(const std::string& folder) {
  std::error_code ignored;
  std::vector<fs::path> masks;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (is_as_written(entry.path().string()) && !entry.is_directory(ignored))
      masks.push_back(entry.path());
  for (const fs::path& mask : masks) remove_quietly(mask);
}

/// A number of float's precision.
std::string short_text(double value) {
  return fmt::format("{}", static_cast<float>(value));
}

io::CocoWriter::Object coco_object(const KeptObject& object, const std::string& class_name) {
  io::CocoWriter::Object known;
  for (std::size_t i = 0; i < known.box.size(); ++i)
    known.box[i] = static_cast<float>(object.box[i]);
  known.score = static_cast<float>(object.score);
  known.label = object.label;
  known.class_name = class_name;
  known.area = object.mask.area();
  known.counts = object.counts;
  return known;
}

std::vector<std::string> row_of(const SegmentInput& input,
                                std::size_t number,
                                const KeptObject& object,
                                const std::string& class_name) {
  std::vector<std::string> row{
      io::safe_cell(input.path),
      io::safe_cell(input.view),
      std::to_string(number),
      class_name.empty() ? std::to_string(object.label) : io::safe_cell(class_name),
      short_text(object.score)};
  for (const double side : object.box) row.push_back(short_text(side));
  row.push_back(std::to_string(object.mask.area()));
  for (const int64_t side : object.mask.box()) row.push_back(std::to_string(side));
  return row;
}

}  // namespace

SegmentFiles::SegmentFiles(std::string folder,
                           Settings settings,
                           bool object_masks,
                           ClassNames class_names)
    : folder_(std::move(folder)),
      settings_(std::move(settings)),
      object_masks_(object_masks),
      class_names_(std::move(class_names)),
      record_(folder_, "segmented") {
  std::error_code ignored;
  for (const char* kind : {"masks", "objects"}) {
    const std::string below = folder_ + "/" + kind;
    if (!folder_exists(below)) continue;
    remove_stale_temporaries(below);
    for (const auto& entry : fs::recursive_directory_iterator(below, ignored))
      if (entry.is_directory(ignored)) remove_stale_temporaries(entry.path().string());
  }
}

std::string SegmentFiles::stamp_of(const SegmentInput& input, const std::string& content) const {
  return io::fingerprint(fmt::format("{} {} {}", settings_(input.view), object_masks_, content));
}

std::string SegmentFiles::label_path(const SegmentInput& input) const {
  return fmt::format("{}/masks/{}.png", folder_, input.name);
}

std::string SegmentFiles::object_path(const SegmentInput& input, std::size_t number) const {
  return fmt::format("{}/objects/{}/{:04}.png", folder_, input.name, number + 1);
}

bool SegmentFiles::has(const SegmentInput& input, const std::string& content) {
  const std::lock_guard lock(mutex_);
  const std::string stamp = stamp_of(input, content);
  if (!record_.find(input.name, stamp)) return false;
  try {
    const KeptImage image = kept_image(record_.line(input.name, stamp, input.path));
    for (std::size_t i = 0; object_masks_ && i < image.objects.size(); ++i)
      if (!is_as_written(object_path(input, i))) return false;
  } catch (const Error&) {
    return false;
  }
  current_[input.name] = stamp;
  return true;
}

void SegmentFiles::prepare_folder(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const std::lock_guard lock(mutex_);
  if (folders_.insert(folder).second) make_folders(folder);
}

void SegmentFiles::write(const SegmentedImage& image) {
  const std::string path = label_path(image.input);
  prepare_folder(path);
  io::write_png(path, image.labels());
  const std::string objects = fmt::format("{}/objects/{}", folder_, image.input.name);
  remove_object_masks(objects);  // of a run with other settings
  if (object_masks_) {
    make_folders(objects);
    io::Image mask;
    mask.shape = {1, 1, image.height, image.width};
    for (std::size_t i = 0; i < image.objects.size(); ++i) {
      std::vector<uint16_t> inside(static_cast<std::size_t>(mask.count()));
      image.objects[i].mask.paint(255, inside.data());
      mask.pixels.assign(inside.begin(), inside.end());
      io::write_png(object_path(image.input, i), mask);
    }
  }
  const std::string stamp = stamp_of(image.input, image.content);
  record_.add({image.input.name, image.input.path, stamp, {{"mask", path}}, text_of(image)});
  const std::lock_guard lock(mutex_);
  current_[image.input.name] = stamp;
}

SegmentFiles::Totals SegmentFiles::finish(const std::vector<SegmentInput>& inputs) {
  const std::lock_guard lock(mutex_);
  record_.read();
  io::CocoWriter coco(folder_ + "/instances.json");
  const std::vector<std::string> columns{"image",
                                         "view",
                                         "object",
                                         "class",
                                         "score",
                                         "x0",
                                         "y0",
                                         "x1",
                                         "y1",
                                         "area",
                                         "mask_left",
                                         "mask_top",
                                         "mask_width",
                                         "mask_height"};
  std::vector<std::vector<std::string>> rows;
  Totals totals;
  for (const SegmentInput& input : inputs) {
    const auto current = current_.find(input.name);
    if (current == current_.end()) continue;
    const KeptImage image = kept_image(record_.line(input.name, current->second, input.path));
    ++totals.images;
    coco.add_image(input.path,
                   image.width,
                   image.height,
                   {{"label_file", "masks/" + input.name + ".png"}, {"view", input.view}});
    std::size_t number = 0;
    const std::vector<std::string> names =
        class_names_ ? class_names_(input.view) : std::vector<std::string>();
    for (const KeptObject& object : image.objects) {
      const auto label = static_cast<std::size_t>(object.label);
      const std::string name = label < names.size() ? names[label] : "";
      coco.add_object(coco_object(object, name));
      rows.push_back(row_of(input, ++number, object, name));
      totals.empty += object.mask.area() == 0 ? 1 : 0;
    }
    if (static_cast<int64_t>(number) > totals.most) {
      totals.most = static_cast<int64_t>(number);
      totals.most_in = input.path;
    }
  }
  totals.objects = coco.objects();
  coco.finish();
  io::write_table(folder_ + "/objects.csv", columns, rows);
  return totals;
}

}  // namespace cytra::pipelines
