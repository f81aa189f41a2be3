#include "app/predict_boxes.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/predict_books.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/run_lock.h"
#include "config/json.h"
#include "data/image_tensor.h"
#include "inference/overlay.h"
#include "io/csv.h"
#include "io/png.h"
#include "io/reader.h"
#include "pipelines/detector.h"

namespace cytra::app {
namespace {

using pipelines::Detection;

/// The two tables, and pictures of each image.
class BoxFiles {
 public:
  BoxFiles(std::string folder, int64_t classes, bool overlay)
      : folder_(std::move(folder)), classes_(classes), overlay_(overlay) {}

  /// `image`: (C,H,W).
  void add(const data::Source& source,
           const at::Tensor& image,
           const std::vector<Detection>& found) {
    ++images_;
    coco_images_ +=
        fmt::format("{}\n{{\"id\":{},\"file_name\":{},\"width\":{},\"height\":{}}}",
                    images_ == 1 ? "" : ",",
                    images_,
                    config::to_json(config::to_utf8(config::Node::make_string(source.path))),
                    image.size(2),
                    image.size(1));
    for (const Detection& one : found) {
      const float width = one.x1 - one.x0, height = one.y1 - one.y0;
      coco_objects_ += fmt::format(
          "{}\n{{\"id\":{},\"image_id\":{},\"category_id\":{},\"bbox\":[{},{},{},{}],\"area\":{},"
          "\"iscrowd\":0,\"score\":{}}}",
          rows_.empty() ? "" : ",",
          rows_.size() + 1,
          images_,
          one.label,
          one.x0,
          one.y0,
          width,
          height,
          width * height,
          one.score);
      rows_.push_back({source.path,
                       fmt::to_string(one.x0),
                       fmt::to_string(one.y0),
                       fmt::to_string(one.x1),
                       fmt::to_string(one.y1),
                       fmt::to_string(one.score),
                       fmt::to_string(one.label)});
    }
    const std::string name = names_.next(source);
    if (overlay_) draw(folder_ + "/" + name + "_overlay.png", image, found);
  }
  void finish(cli::Results& results) {
    const std::string table = folder_ + "/detections.csv", coco = folder_ + "/detections.json";
    io::write_table(table, {"image", "x0", "y0", "x1", "y1", "score", "class"}, rows_);
    std::string categories;
    for (int64_t k = 0; k < classes_; ++k)
      categories += fmt::format("{}{{\"id\":{},\"name\":\"class {}\"}}", k == 0 ? "" : ",", k, k);
    write_file(coco,
               fmt::format("{{\"images\":[{}\n],\"categories\":[{}],\"annotations\":[{}\n]}}\n",
                           coco_images_,
                           categories,
                           coco_objects_));
    results.add("table", table);
    results.add("coco", coco);
    results.add("objects", config::Node::make_integer(static_cast<int64_t>(rows_.size())));
  }

 private:
  static void draw(const std::string& path,
                   const at::Tensor& image,
                   const std::vector<Detection>& found) {
    const int64_t height = image.size(1), width = image.size(2);
    const at::Tensor labels = at::zeros({height, width}, at::kInt);
    for (std::size_t i = found.size(); i-- > 0;) {  // the best ones on top
      const auto side = [](float value, int64_t most) {
        return std::clamp<int64_t>(std::lround(value), 0, most);
      };
      const Detection& one = found[i];
      labels.slice(0, side(one.y0, height), side(one.y1, height))
          .slice(1, side(one.x0, width), side(one.x1, width))
          .fill_(static_cast<int64_t>(i) + 1);
    }
    io::write_png(path, inference::draw_overlay(image.to(at::kFloat), labels));
  }
  std::string folder_, coco_images_, coco_objects_;
  int64_t classes_, images_ = 0;
  bool overlay_;
  OutputNames names_;
  std::vector<std::vector<std::string>> rows_;
};

void expect_plain(const PredictConfig& config) {
  const auto refuse = [](const char* key) {
    throw ConfigError(fmt::format("{}: a detector gives boxes, which have no use for it", key));
  };
  if (config.predict.resume) refuse("predict.resume");
  if (config.predict.dry_run) refuse("predict.dry_run");
  if (config.data.scores()) refuse("data.with_target");
  if (config.checkpoint.ckpt_path.size() > 1) refuse("checkpoint.ckpt_path with several models");
  if (config.trainer.devices > 1) refuse("trainer.devices");
  const inference::EngineOptions& engine = config.performance.engine;
  if (engine.backend != "auto" && engine.backend != "eager") refuse("performance.backend");
  if (engine.quantization != "none") refuse("performance.quantization");
}

}  // namespace

bool finds_boxes(const inference::LoadedModel& model) {
  const config::Node* const task = model.config.find("task._target_");
  return task != nullptr && task->kind == config::Kind::string && task->string == "DetectionTask";
}

int predict_boxes(cli::Run run,
                  const PredictConfig& config,
                  const inference::LoadedModel& model,
                  c10::Device device) {
  expect_plain(config);
  const config::Node task = model.config.at("task");
  pipelines::DetectorOptions options;
  options.conf_threshold = config.predict.threshold;
  options.iou_threshold = task.get<double>("nms_thresh", options.iou_threshold);
  options.max_detections = task.get<int64_t>("detections_per_img", options.max_detections);
  options.batch_size = config.data.batch_size;
  const auto detector = pipelines::load_detector(model.path, device, options);
  const std::string x_key = task.get<std::string>("x_key", "raw");
  const bool skips = config.data.on_error == "skip";

  Books books(run.json);
  std::vector<data::Sample> inputs =
      list_inputs(config.data, {x_key}, [&](const std::string& id, const std::exception& error) {
        books.leave_out(id, error);
        ++books.images;
      });
  inputs.resize(static_cast<std::size_t>(config.trainer.limit.of(
      static_cast<int64_t>(inputs.size()), "trainer.limit_predict_batches")));
  books.images += static_cast<int64_t>(inputs.size());
  perf::apply(config.performance, device);
  const std::string folder = open_run_folder(run);
  const RunLock lock(folder);
  log::info("{}: {} images on {}", model.path, books.images, perf::describe(device));

  BoxFiles files(folder, model.out_channels - 5, config.predict.overlay);
  const auto tried = [&](const data::Sample& input, const auto& work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      if (!skips) throw;
      books.leave_out(input.id, error);
      return false;
    }
  };
  {
    const EndOnSignal end_on_signal(books, [&](int) { books.results.print(); });
    Progress progress("finding", static_cast<int64_t>(inputs.size()));
    const auto step = static_cast<std::size_t>(config.data.batch_size);
    for (std::size_t first = 0; first < inputs.size(); first += step) {
      std::vector<at::Tensor> images;
      std::vector<const data::Sample*> loaded;
      for (std::size_t i = first; i < std::min(first + step, inputs.size()); ++i) {
        tried(inputs[i], [&] {
          const data::Source& source = inputs[i].sources.at(x_key);
          at::Tensor image =
              data::to_tensor(io::read_image(source.path, source.selection), 2, source.path);
          data::check_finite(image, source.path);
          if (image.size(0) != detector->in_channels()) {
            throw DataError(fmt::format("{}: {} channels, the model expects {}",
                                        source.path,
                                        image.size(0),
                                        detector->in_channels()));
          }
          images.push_back(std::move(image));
          loaded.push_back(&inputs[i]);
        });
      }
      const auto found = detector->detect(images);
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (tried(*loaded[i],
                  [&] { files.add(loaded[i]->sources.at(x_key), images[i], found[i]); })) {
          const std::lock_guard guard(books.mutex);
          ++books.done;
        }
      }
      progress.update(static_cast<int64_t>(std::min(first + step, inputs.size())));
    }
  }
  files.finish(books.results);
  books.results.add("output_dir", folder);
  log::info("{} of {} images", books.done, books.images);
  books.results.print();
  return books.code;
}

}  // namespace cytra::app
