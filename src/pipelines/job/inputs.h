#pragma once
// The images that a path names: the section `data` of programs that work on many images.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/sample/sample.h"
#include "inference/predictor/predictor.h"

namespace cytra::pipelines {

struct InputOptions {
  std::string path, on_error = "skip", on_mismatch = "error";
  bool with_target = false;
  int64_t batch_size = 1;
  std::vector<double> spacing_um;
  std::optional<std::string> axes, split;
  std::optional<double> fill_nan;
  void visit(auto& v) {
    v("path", path, "an image, a folder of images, or a manifest (.csv, .tsv)", config::required);
    v("on_error",
      on_error,
      "an image that can't be read or predicted: is left out, or ends the run",
      {"skip", "fail"});
    v("batch_size",
      batch_size,
      "images in memory of equal size that share their windows' batches, to fill a device",
      1,
      4096);
    v("with_target",
      with_target,
      "the manifest has the target's column, too: report the task's metrics");
    v("split",
      split,
      "the rows of a manifest whose column says train, valid or test; null: all, but "
      "with_target those that were not trained on: test, else valid",
      {"train", "valid", "test", "all"});
    v("on_mismatch",
      on_mismatch,
      "a target whose file says that it does not lie on its image: is left out by on_error, "
      "resampled, or taken as it is",
      data::kMismatches);
    v("fill_nan",
      fill_nan,
      "put in place of values that are NaN or infinite; null: as in the training");
    v("spacing_um",
      spacing_um,
      "voxel size in um, [z, y, x] or [y, x], for images that do not tell; null: the file's",
      0,
      1e9);
    v("axes",
      axes,
      "the files' axes where they don't say or are wrong, the slowest first: TYX, ZCYX, ...; null: "
      "as the checkpoint's LoadImaged");
  }
  void check() const {
    if (axes) io::check_axes(*axes);
    for (const double spacing : spacing_um) {
      if (!(spacing > 0)) throw ConfigError("spacing_um: expected numbers above 0");
    }
    if (spacing_um.size() > 3) throw ConfigError("spacing_um: expected [z, y, x] or [y, x]");
    if (with_target && !is_manifest()) {
      throw ConfigError(
          "with_target: expected a manifest (.csv, .tsv) as path, with the column of the "
          "target, got " +
          path);
    }
  }
  bool is_manifest() const;
  bool scores() const { return with_target; }
};

/// Called for an input that is left out: its path, and the error.
using LeaveOut = std::function<void(const std::string& id, const std::exception& error)>;

/// What the model needs to know how files are put together.
struct InputWants {
  int64_t channels = 0;  // 0: not known
  int64_t spatial_dims = 2;
  bool time_is_channel = false;                 // as in the training's data set
  std::vector<std::string> keys = {};           // further columns, where the manifest has them
  std::vector<std::string> source_keys = {};    // data.source_keys of the training
  std::string split_column = {};                // data.split_column of the training
  config::Node split_map = {};                  // data.split_map
  bool has_folds = false;                       // rows for validation were trained on, too
  std::vector<std::string> class_folders = {};  // the classes, where images were in their folders
  std::string class_key = {};
  std::optional<double> fill_nan = {};  // data.fill_nan of the training
};

/// What its configuration says of tables.
InputWants wants_of(const inference::LoadedModel& model);
InputWants wants_of(const inference::Predictor& predictor, const config::Node& inference_args);
/// The key of the file that the model's image comes from, which may be made of several.
std::string source_key(const inference::Predictor& predictor);

/// The inputs that data.path names, in their order: one image (a folder with a DICOM series is one
/// for a model of stacks; CASE_0000.ext with a channel stands for CASE_0001.ext ..., too), the
/// images of a folder (CASE_0000.ext, CASE_0001.ext are channels of one), the test images of a data
/// set of nnU-Net, the Decathlon or COCO, or the rows of a manifest, which has the columns `keys`,
/// the image's first, as data.split says. Throws: ConfigError, DataError; with on_error=skip a row
/// whose images are missing goes to `leave_out` instead.
std::vector<data::Sample> list_inputs(const InputOptions& options,
                                      const std::vector<std::string>& keys,
                                      const LeaveOut& leave_out,
                                      const InputWants& wants = {});

/// The samples of an image's parts, each made when it is asked for, because a file may state any
/// number.
class Frames {
 public:
  /// Adds `count` time points or planes of `sample`; 0: the sample itself.
  void add(const data::Sample& sample, int64_t count, int64_t io::Selection::*part) {
    images_.push_back({sample, count, part});
  }
  std::size_t size() const;
  data::Sample operator[](std::size_t number) const;

 private:
  struct Several {
    data::Sample sample;
    int64_t count;
    int64_t io::Selection::*part;
    std::size_t size() const { return static_cast<std::size_t>(std::max<int64_t>(count, 1)); }
  };
  std::vector<Several> images_;
};

/// What somebody has chosen of files already.
struct PartsToTake {
  std::string axes = "";
  bool is_time_chosen = false, is_scene_chosen = false, takes_planes = false;
};

/// What the predictor's transforms have chosen.
PartsToTake parts_to_take(const inference::Predictor& predictor);

/// A sample for each scene of `image`'s file, where none is chosen. Throws: DataError, IoError.
std::vector<data::Sample> scenes_of(const data::Sample& sample,
                                    const std::string& image,
                                    const PartsToTake& chosen);
/// A sample's image: all of it, or one sample for each scene of its file and each frame of a time
/// lapse (plane of a stack, where taken), where none is chosen. Throws: as scenes_of(),
/// ConfigError.
Frames frames_of(const data::Sample& sample, const std::string& image, const PartsToTake& chosen);

}  // namespace cytra::pipelines
