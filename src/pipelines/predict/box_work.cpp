#include "pipelines/predict/box_work.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "data/sample/image_tensor.h"
#include "inference/outputs/draw_overlay.h"
#include "inference/windows/sliding_window.h"
#include "io/csv.h"
#include "io/grey.h"
#include "io/objects/coco_writer.h"
#include "io/reader.h"
#include "nn/detection_model.h"

namespace cytra::pipelines {

using config::Node;

struct BoxWork::Job final : PredictJob {
  at::Tensor pixels;  // (C,H,W)
  ops::Boxes found;
  static Job& of(PredictJob& job) { return static_cast<Job&>(job); }
};

namespace {

/// The boxes of an image of `height` and `width` as JSON of a map, for a DoneRecord. Numbers are
/// the shortest that give the same float again.
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

/// Throws: Error for a line that does not hold what boxes_text() says.
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

/// detections.csv and detections.json, filled image by image; they hold the boxes of one at a time.
class BoxTables {
 public:
  /// `names`: of the classes; empty: numbers. Throws: as AtomicFile.
  BoxTables(const std::string& csv, const std::string& coco, std::vector<std::string> names)
      : names_(std::move(names)), csv_(csv), coco_(coco) {
    csv_.write("image,x0,y0,x1,y1,score,class\n");
  }
  /// Throws: as expect_boxes().
  void add(const std::string& path, const Node& line) {
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
  /// Returns how many boxes there are. Throws: as AtomicFile.
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
  const std::vector<std::string> names_;
  AtomicFile csv_;
  io::CocoWriter coco_;
};

DetectorOptions detector_options(const inference::LoadedModel& model,
                                 const InputOptions& data,
                                 const PredictOptions& predict,
                                 const Node& inference_args) {
  if (model.spatial_dims != 2) {
    throw ConfigError("{}: a detector in {} dimensions; boxes are written only for 2D images",
                      model.path,
                      model.spatial_dims);
  }
  DetectorOptions options;
  options.conf_threshold = predict.threshold;
  options.iou_threshold = model.config.get<double>("task.nms_thresh", options.iou_threshold);
  options.max_detections = predict.max_detections.value_or(options.max_detections);
  Node given = Node::make_map();
  given.set("roi_size", Node::make_integer(0));  // whole images, unless windows are asked for
  given.set("sw_batch_size", Node::make_integer(data.batch_size));
  for (const auto& [key, value] : inference_args.map)
    if (!value.is_null() && !inference::WindowChanges::is_auto(value)) given.set(key, value);
  const auto windows = config::parse<inference::SlidingWindowOptions>(given);
  options.roi_size = windows.roi_size;
  options.overlap = windows.overlap;
  options.batch_size = windows.sw_batch_size;
  return options;
}

at::Tensor read_pixels(const data::Source& source, int64_t channels) {
  io::Image pixels = io::read_image(source.path, source.selection);
  if (channels == 1 && source.more.empty()) io::make_grey(pixels, source.path);
  at::Tensor image = data::to_tensor(std::move(pixels), 2, source.path);
  for (const std::string& path : source.more)  // its further channels
    image = at::cat({image, data::to_tensor(io::read_image(path, source.selection), 2, path)});
  data::check_finite(image, source.path);
  if (image.size(0) == channels) return image;
  throw DataError("{}: {} channels, the model expects {}", source.path, image.size(0), channels);
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

}  // namespace

BoxWork::BoxWork(const inference::Subject& subject,
                 const InputOptions& data,
                 const PredictOptions& options,
                 const Node& inference_args)
    : model_(subject.first()),
      device_(subject.device),
      x_key_(model_.config.get<std::string>("task.x_key", "raw")),
      overlay_(options.overlay),
      options_(detector_options(model_, data, options, inference_args)),
      detector_(make_detector(model_, device_, options_)) {}

PredictJobPointer BoxWork::new_job() const {
  return std::make_shared<Job>();
}

std::optional<inference::ResultFiles> BoxWork::done_before(const PredictJob& job) const {
  const DoneRecord& record = run().record;
  if (!record.has(job.name(), job.stamp)) return std::nullopt;
  try {
    expect_boxes(record.line(job.name(), job.stamp, job.path));
  } catch (const Error&) {
    return std::nullopt;
  }
  return overlay_ ? PredictWork::done_before(job) : inference::ResultFiles();
}

int64_t BoxWork::read(PredictJob& job) {
  at::Tensor& pixels = Job::of(job).pixels;
  pixels = read_pixels(job.sample.sources.at(x_key_), detector_->in_channels());
  return static_cast<int64_t>(pixels.nbytes());
}

void BoxWork::compute(const std::vector<PredictJobPointer>& jobs,
                      Progress& /*progress*/,
                      const Send& /*send*/) {
  std::vector<at::Tensor> images;
  for (const PredictJobPointer& job : jobs) images.push_back(Job::of(*job).pixels);
  std::vector<ops::Boxes> found = detector_->detect(images);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Job::of(*jobs[i]).found = std::move(found[i]);
    jobs[i]->is_computed = true;
  }
}

void BoxWork::write(PredictJob& of) {
  Job& job = Job::of(of);
  job.more = boxes_text(job.pixels.size(1), job.pixels.size(2), job.found);
  if (!overlay_) return;
  job.files = {{"overlay", job.stem + "_overlay.png"}};
  draw_boxes(job.files[0].second, job.pixels, job.found);
}

std::vector<at::Tensor> BoxWork::sums() {
  full_ = at::tensor({detector_->full_windows()});
  return {full_};
}

void BoxWork::finish(const std::vector<Done>& images, cli::Results& results) {
  if (!full_.defined()) sums();
  if (const auto full = full_.item<int64_t>(); full > 0) {
    log::warn(
        "{} images or windows have {} objects, as many as predict.max_detections allows: there may "
        "be more; raise it",
        full,
        options_.max_detections);
  }
  DoneRecord& record = run().record;
  record.read();
  const std::string csv = run().folder + "/detections.csv",
                    coco = run().folder + "/detections.json";
  BoxTables tables(csv, coco, model_.config.get<std::vector<std::string>>("task.class_names", {}));
  for (const Done& image : images) {
    const std::string& path = image.input.sources.at(x_key_).path;
    tables.add(path, record.line(image.name, image.stamp, path));
  }
  const int64_t objects =
      tables.finish(dynamic_cast<const nn::DetectionModel&>(*model_.network).num_classes());
  if (objects == 0) log::warn("there is no object in any of the images");
  results.add("table", csv);
  results.add("coco", coco);
  results.add("objects", Node::make_integer(objects));
}

}  // namespace cytra::pipelines
