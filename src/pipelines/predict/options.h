#pragma once
// The section `predict`: what is written for images.
#include <optional>
#include <string>
#include <vector>

#include "config/registry.h"
#include "inference/postprocess/postprocess.h"
#include "io/formats.h"
#include "pipelines/job/work_profile.h"

namespace cytra::pipelines {

/// The choices: auto, and the forms of all decoders.
std::vector<std::string> save_choices();
/// The choices: none, those of inference::result_outputs("contours"), and both for all of them.
std::vector<std::string> contour_choices();

/// How results are made of a model's output.
struct MadeOptions {
  std::string save = "auto";
  double threshold = 0.5;
  config::Node postprocess, temperature;
  std::optional<bool> original_grid;
  std::optional<double> diameter, diameter_um;  // for inference::scale_objects()
  double stitch_threshold = 0;
  void visit(auto& v) {
    v("save",
      save,
      "mask: class numbers, or a channel of 0 and 1 per mask; probability or logits: one float32 "
      "channel per class or mask; entropy: of the probabilities, in nats; variance: of each "
      "probability over checkpoints, turned images and dropout; labels: of instances, raw: what "
      "they are made of; auto: mask, of a regression its value, of instances labels",
      save_choices());
    v("threshold", threshold, "threshold of a mask's probability", 0, 1);
    v("temperature",
      temperature,
      "what logits are divided by, so that probabilities are neither too sure nor too unsure; "
      "auto: what fits the training's validation best, which the metric `temperature` has found");
    v("postprocess",
      postprocess,
      "steps that change a result before it is written, in their order",
      config::list_of<inference::Postprocess>());
    v("stitch_threshold",
      stitch_threshold,
      "objects of a stack that a 2D model has predicted plane by plane are one where they share "
      "this or more of both; 0: each plane has its own",
      0,
      1);
    v("diameter",
      diameter,
      "of the objects in these images, in pixels, where it is far from that of the training's "
      "(task.diameter): images are resampled to its scale, and results back",
      0.1,
      1e5);
    v("diameter_um",
      diameter_um,
      "the same in micrometres, for images whose files say their pixel size",
      1e-3,
      1e9);
    v("original_grid",
      original_grid,
      "write results in the voxels of the file, not in those that the transforms (Spacingd, "
      "Orientationd, crops) have made; null: only those of nnU-Net's models");
  }
  /// PredictorOptions::temperature. Throws: ConfigError for another word, or a number out of range.
  double temperature_number() const;
  void check() {
    temperature_number();
    if (stitch_threshold == 0) return;
    config::Node step = config::Node::make_map();
    step.set("_target_", config::Node::make_string("StitchPlanes"));
    step.set("threshold", config::Node::make_real(stitch_threshold));
    postprocess.kind = config::Kind::list;
    postprocess.list.insert(postprocess.list.begin(), std::move(step));
  }
};

struct PredictOptions : MadeOptions {
  std::string format = "auto", frames = "apart", contours = "none";
  bool overlay = true, measurements = false, resume = false, dry_run = false, timer = false;
  std::vector<std::string> heads;
  std::optional<int64_t> max_detections, max_memory_mb;
  config::Node skip_empty;
  std::optional<std::string> prometheus, profiler;
  void visit(auto& v) {
    MadeOptions::visit(v);
    v("heads",
      heads,
      "for a model with several heads: those to predict; []: all, each in a folder");
    v("format",
      format,
      "auto: as the image where that can be written (PNG of masks alone), else OME-TIFF",
      io::output_choices());
    v("frames",
      frames,
      "for a time lapse: a file for each time point, or one for all",
      {"apart", "together"});
    v("overlay", overlay, "also write a PNG of the mask over the image");
    v("measurements",
      measurements,
      "also write a table of the objects (labels) of each image: NAME.csv");
    v("contours",
      contours,
      "also write the objects' outlines: geojson for QuPath, imagej_roi for ImageJ and Fiji",
      contour_choices());
    v("resume", resume, "go on with paths.output_dir: leave out images whose results are there");
    v("max_detections",
      max_detections,
      "for a detector: how many of the best objects of a window are kept; null: 10000",
      1,
      1e6);
    v("max_memory_mb",
      max_memory_mb,
      "MB for predicting an image, besides the model and the image: as many windows at once as "
      "fit, unless inference_args.sw_batch_size says how many; null: what is free",
      1,
      1e9);
    v("skip_empty",
      skip_empty,
      "which values of the file are foreground, so that windows without any are left out and get "
      "background: 100 or '>100' (above), '<220' (below), otsu or '<otsu' (found in each image), "
      "or a mask, where it is not 0: an image, or a folder with one of each image's name; null: "
      "all windows are predicted");
    v("prometheus",
      prometheus,
      "FILE.prom with the figures of the stages at the end, for node_exporter's textfile "
      "collector");
    v("profiler",
      profiler,
      "what the thread that computes does, by batches of images, into the folder profiler: memory, "
      "transfers, or pytorch (operations)",
      profile_names());
    v("timer", timer, "tell at the end how long images took to read, predict and write");
    v("dry_run", dry_run, "say what would be done, and what that takes; write nothing");
  }
  void check();
  /// The outputs of an image, by their names (inference::make_result_output).
  std::vector<std::string> outputs() const;
};

}  // namespace cytra::pipelines
