#include "app/predict/boxes.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/predict/image_options.h"
#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/run_lock.h"
#include "config/text_of.h"
#include "data/sample/image_tensor.h"
#include "io/grey.h"
#include "io/reader.h"
#include "nn/detection_model.h"
#include "pipelines/detection/detector.h"
#include "pipelines/job/names.h"
#include "pipelines/job/stamp.h"
#include "pipelines/job/tally.h"
#include "pipelines/predict/box_files.h"

namespace cytra::app {
namespace {

using config::Node;

void expect_plain(const PredictConfig& config) {
  const std::string why = "this option is not for a detector, which gives boxes";
  expect_no_image_options(config, why);
  const auto refuse = [&](const std::string& option) { throw ConfigError(option + ": " + why); };
  if (config.predict.temperature_number() != 1) refuse("predict.temperature");
  if (config.data.scores()) refuse("data.with_target");
  if (config.checkpoint.ckpt_path.size() > 1) refuse("checkpoint.ckpt_path with several models");
  for (const auto& [key, value] : config.inference_args.map) {
    if (!value.is_null() && key != "roi_size" && key != "overlap" && key != "sw_batch_size")
      refuse(value.where());
  }
}

pipelines::DetectorOptions detector_options(const PredictConfig& config, const Node& task) {
  pipelines::DetectorOptions options;
  options.conf_threshold = config.predict.threshold;
  options.iou_threshold = task.get<double>("nms_thresh", options.iou_threshold);
  options.max_detections = config.predict.max_detections.value_or(options.max_detections);
  Node given = Node::make_map();
  given.set("roi_size", Node::make_integer(0));  // whole images, unless windows are asked for
  given.set("sw_batch_size", Node::make_integer(config.data.batch_size));
  for (const auto& [key, value] : config.inference_args.map)
    if (!value.is_null() && !inference::WindowChanges::is_auto(value)) given.set(key, value);
  const auto windows = config::parse<inference::SlidingWindowOptions>(given);
  options.roi_size = windows.roi_size;
  options.overlap = windows.overlap;
  options.batch_size = windows.sw_batch_size;
  return options;
}

/// An image and what is computed from it.
struct BoxJob {
  const data::Sample* input;
  const data::Source* source;
  pipelines::BoxedImage image;
  bool is_done = false;
};

/// The jobs of all images. Names depend on all images, also on failed ones: a resumed run gives
/// the same names.
std::vector<BoxJob> box_jobs(const std::vector<data::Sample>& inputs, const std::string& x_key) {
  std::vector<BoxJob> jobs;
  pipelines::OutputNames names;
  for (const data::Sample& input : inputs) {
    const data::Source& source = input.sources.at(x_key);
    jobs.push_back({&input, &source, {names.next(source), source.path, ""}});
  }
  return jobs;
}

/// Splits inputs into their scenes and time points; an input that can't be opened fails when it is
/// read.
std::vector<data::Sample> all_parts_of(const std::vector<data::Sample>& inputs,
                                       const std::string& key) {
  std::vector<data::Sample> all;
  for (const data::Sample& input : inputs) {
    pipelines::Frames parts;
    try {
      parts = pipelines::frames_of(input, key, pipelines::PartsToTake());
    } catch (const Error&) {
      parts.add(input, 0);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) all.push_back(parts[i]);
  }
  return all;
}

at::Tensor read_pixels(const data::Source& source, int64_t channels) {
  io::Image pixels = io::read_image(source.path, source.selection);
  if (channels == 1 && source.more.empty()) io::make_grey(pixels, source.path);
  at::Tensor image = data::to_tensor(std::move(pixels), 2, source.path);
  for (const std::string& path : source.more)  // its further channels
    image = at::cat({image, data::to_tensor(io::read_image(path, source.selection), 2, path)});
  data::check_finite(image, source.path);
  if (image.size(0) == channels) return image;
  throw DataError(
      fmt::format("{}: {} channels, the model expects {}", source.path, image.size(0), channels));
}

}  // namespace

int predict_boxes(cli::Run run, const PredictConfig& config, const inference::Subject& subject) {
  const inference::LoadedModel& model = subject.first();
  expect_plain(config);
  if (model.spatial_dims != 2)
    throw ConfigError(
        fmt::format("{}: a detector in {} dimensions; boxes are written only for 2D images",
                    model.path,
                    model.spatial_dims));
  const Node& task = model.config.at("task");
  const pipelines::DetectorOptions options = detector_options(config, task);
  const auto detector = pipelines::make_detector(model, subject.device, options);
  const std::string x_key = task.get<std::string>("x_key", "raw");

  pipelines::Tally tally(run.json);
  const pipelines::InputWants wants = pipelines::wants_of(model);
  std::vector<data::Sample> inputs =
      pipelines::list_inputs(config.data, {x_key}, tally.leaving_out(), wants);
  inputs.resize(static_cast<std::size_t>(config.trainer.limit.of(
      static_cast<int64_t>(inputs.size()), "trainer.limit_predict_batches")));
  inputs = all_parts_of(inputs, x_key);
  tally.images += static_cast<int64_t>(inputs.size());
  const std::string folder = open_run_folder(run, config.predict.resume);
  const RunLock lock(folder);
  log::info("{}: {} images on {}", model.path, tally.images, device::describe(subject.device));

  // Options that a detector does not read.
  std::vector<std::string_view> unread{"backend", "quantization"};
  unread.insert(unread.end(), pipelines::kOptionsOfSpeed.begin(), pipelines::kOptionsOfSpeed.end());
  const std::string settings =
      detector->fingerprint() + config::to_json(model.config.at("data.transforms")) +
      config.data.axes.value_or("") +
      config::text_of(config.model, {"spatial_dims", "compile_model", "compile_mode"}) +
      config::text_of(config.performance, unread);
  pipelines::BoxFiles files(folder,
                            dynamic_cast<const nn::DetectionModel&>(*model.network).num_classes(),
                            task.get<std::vector<std::string>>("class_names", {}),
                            config.predict.overlay);
  std::vector<BoxJob> jobs = box_jobs(inputs, x_key);
  using Phase = pipelines::Tally::Phase;
  const auto attempt = [&](const data::Sample& input, Phase phase, const auto& work) {
    tally.attempt(input.id, phase, config.data.on_error == "fail", work);
  };
  const auto count = [&](BoxJob& job, bool was_there) {
    const std::lock_guard guard(tally.mutex);
    job.is_done = true;
    ++tally.done;
    if (was_there) ++tally.resumed;
  };
  {
    const pipelines::EndOnSignal end_on_signal(tally, [&](int signal) {
      tally.conclude(folder, "searched", signal, pipelines::kResumeHint);
    });
    Progress progress("finding", static_cast<int64_t>(inputs.size()));
    const auto step = static_cast<std::size_t>(config.data.batch_size);
    for (std::size_t first = 0; first < jobs.size(); first += step) {
      std::vector<at::Tensor> images;
      std::vector<BoxJob*> loaded;
      const std::size_t end = std::min(first + step, jobs.size());
      for (std::size_t i = first; i < end; ++i) {
        BoxJob& job = jobs[i];
        attempt(*job.input, Phase::reading, [&] {
          job.image.stamp =
              pipelines::stamp_of(*job.input, pipelines::content_of(*job.input), settings);
          if (files.has(job.image)) return count(job, true);
          images.push_back(read_pixels(*job.source, detector->in_channels()));
          loaded.push_back(&job);
        });
      }
      std::vector<ops::Boxes> found;
      if (images.size() > 1) {
        try {
          found = detector->detect(images);
        } catch (const std::exception& error) {  // of one of them, or all: each by itself tells
          log::debug("{} images: {}; each is searched by itself", images.size(), error.what());
        }
      }
      for (std::size_t i = 0; i < images.size(); ++i) {
        std::optional<ops::Boxes> own;
        attempt(*loaded[i]->input, Phase::computing, [&] {
          own = found.empty() ? detector->detect({images[i]}).front() : std::move(found[i]);
        });
        if (!own) continue;
        attempt(*loaded[i]->input, Phase::writing, [&] {
          files.add(loaded[i]->image, images[i], *own);
          count(*loaded[i], false);
        });
      }
      progress.update(static_cast<int64_t>(end));
    }
  }
  if (const int64_t full = detector->full_windows(); full > 0) {
    log::warn(
        "{} images or windows have {} objects, as many as predict.max_detections allows: there may "
        "be more; raise it",
        full,
        options.max_detections);
  }
  std::vector<pipelines::BoxedImage> done;
  for (const BoxJob& job : jobs)
    if (job.is_done) done.push_back(job.image);
  const pipelines::BoxFiles::Tables tables = files.finish(done);
  if (tables.objects == 0 && !done.empty()) log::warn("there is no object in any of the images");
  tally.results.add("table", tables.csv);
  tally.results.add("coco", tables.coco);
  tally.results.add("objects", Node::make_integer(tables.objects));
  tally.conclude(folder, "searched");
  return tally.code;
}

}  // namespace cytra::app
