#pragma once
// What `predict` writes: names and formats.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/registry.h"
#include "data/sample.h"
#include "inference/object_slabs.h"
#include "inference/overlay_rows.h"
#include "inference/postprocess.h"
#include "inference/predictor.h"
#include "io/writer.h"

namespace cytra::app {

struct PredictOptions {
  std::string save = "auto", format = "auto", frames = "apart";
  double threshold = 0.5;
  bool overlay = true, original_grid = false, measurements = false, resume = false, dry_run = false,
       timer = false;
  config::Node postprocess;
  std::vector<std::string> heads;
  std::string contours = "none";
  std::optional<int64_t> max_detections;
  std::optional<std::string> prometheus;
  template <class V>
  void visit(V& v) {
    v("save",
      save,
      "mask: class numbers, or a channel of 0 and 1 per mask; probability or logits: one float32 "
      "channel per class or mask; labels: of instances, raw: what they are made of; auto: mask, of "
      "a regression its value, of instances labels",
      {"auto", "mask", "probability", "logits", "value", "labels", "raw"});
    v("heads", heads, "of a model with several heads, those to predict; []: all, each in a folder");
    v("format",
      format,
      "auto: NIfTI, OME-Zarr, NumPy and (of masks) PNG as the image, else OME-TIFF",
      {"auto", "ome_tiff", "nifti", "ome_zarr", "npy", "png"});
    v("frames",
      frames,
      "of a time lapse: a file for each time point, or one for all",
      {"apart", "together"});
    v("threshold", threshold, "of a mask's probability", 0, 1);
    v("overlay", overlay, "also write a PNG of the mask over the image");
    v("postprocess",
      postprocess,
      "steps that change a result before it is written, in their order",
      config::list_of<inference::Postprocess>());
    v("original_grid",
      original_grid,
      "write results in the voxels of the file, not in those that the transforms (Spacingd, "
      "Orientationd, crops) have made");
    v("measurements",
      measurements,
      "also write a table of the objects (labels) of each image: NAME.csv");
    v("contours",
      contours,
      "also write the objects' outlines: geojson for QuPath, imagej_roi for ImageJ and Fiji",
      {"none", "geojson", "imagej_roi", "both"});
    v("resume", resume, "go on with paths.output_dir: leave out images whose results are there");
    v("max_detections", max_detections, "of a detector, the best of a window; null: 10000", 1, 1e6);
    v("prometheus",
      prometheus,
      "FILE.prom with the figures of the stages at the end, for node_exporter's textfile "
      "collector");
    v("timer", timer, "tell at the end how long images took to read, predict and write");
    v("dry_run", dry_run, "say what would be done, and what that takes; write nothing");
  }
  void check() const;
};

/// A name for each output: the image's without folder and extension, the scene and time point that
/// were chosen, and a number when two would share it.
class OutputNames {
 public:
  std::string next(const data::Source& source);
  /// Of a frame, or a scene, of an input whose name is `stem`, once next() was called for all.
  std::string frame(const std::string& stem, int64_t timepoint);
  std::string scene(const std::string& stem, int64_t scene);

 private:
  std::string unique(const std::string& stem);
  std::set<std::string> taken_;
  std::map<std::string, int64_t> numbers_;  // the last one given, by name
};

/// The file of a prediction, `info`, of the image `source`: `stem` with the ending of its format.
/// Throws: DataError when the format can't hold it.
std::string output_path(const std::string& stem,
                        const std::string& source,
                        const io::ImageInfo& info,
                        const PredictOptions& options);

/// What one image's prediction is written by, as its rows come.
class PredictionFiles {
 public:
  /// What all images have in common.
  struct Common {
    const inference::Predictor& predictor;
    const PredictOptions& options;
    inference::PostprocessSteps steps;
    bool scores = false;  // scored() is asked for
  };
  /// `stem`: with the folder. `source`: the image's path.
  PredictionFiles(const Common& common,
                  std::shared_ptr<const inference::ModelInput> input,
                  std::string stem,
                  std::string source);
  /// The next rows, (C,count,...).
  void take(const at::Tensor& rows);
  /// All rows are there: writes what is left. Throws: as io::create_image() and ImageWriter.
  void finish();
  /// Kind ("prediction", "overlay") and path of what was written.
  const std::vector<std::pair<std::string, std::string>>& files() const { return files_; }
  /// What is scored, (C,[D,]H,W), in the voxels of the model: labels, of one that makes any, ahead
  /// of the first step that cuts objects from a mask, or of any step on values.
  const at::Tensor& scored() const { return scored_; }
  /// Whether the objects that were measured or outlined are components of a mask.
  bool has_components() const { return has_components_; }

 private:
  bool takes_objects() const;
  at::Tensor result() const;
  void apply_steps();
  void put(const at::Tensor& rows, io::Dtype dtype);
  void draw(const at::Tensor& values);
  void expect_size(int64_t rows, int64_t columns) const;
  void finish_whole();
  void write_objects();
  io::ImageInfo describe(at::IntArrayRef shape, io::Dtype dtype) const;
  const Common& common_;
  std::shared_ptr<const inference::ModelInput> input_;
  std::string stem_, source_;
  std::unique_ptr<inference::ObjectSlabs> objects_;  // steps of an image that is read by rows
  bool keeps_all_, has_components_ = false;
  std::vector<at::Tensor> rows_;  // where all are needed at once
  int64_t taken_ = 0;             // rows
  inference::Result result_;
  at::Tensor scored_;
  std::unique_ptr<io::ImageWriter> writer_;
  std::optional<inference::ModelInput> shown_;  // the image in its original grid
  std::unique_ptr<inference::OverlayRows> overlay_;
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace cytra::app
