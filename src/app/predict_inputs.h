#pragma once
// What `predict` works on: its `data` section.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/sample.h"

namespace cytra::app {

struct InputOptions {
  std::string path, on_error = "skip";
  bool with_target = false;
  std::vector<double> spacing_um;
  std::optional<std::string> axes;
  template <class V>
  void visit(V& v) {
    v("path", path, "an image, a folder of images, or a manifest (.csv, .tsv)", config::required);
    v("on_error",
      on_error,
      "an image that can't be read or predicted: is left out, or ends the run",
      {"skip", "fail"});
    v("with_target", with_target, "the manifest has the target's column, too: report Dice");
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
    if (spacing_um.size() > 3) throw ConfigError("spacing_um: expected [z, y, x] or [y, x]");
  }
  bool is_manifest() const;
  bool scores() const { return with_target && is_manifest(); }
};

/// Is told of an input that is left out: its path, and the error.
using LeaveOut = std::function<void(const std::string& id, const std::exception& error)>;

/// The inputs that data.path names, in their order: one image, the images of a folder, or the rows
/// of a manifest, which has the columns `keys`, the image's first. Throws: ConfigError, DataError;
/// with on_error=skip a row whose images are missing goes to `leave_out` instead.
std::vector<data::Sample> list_inputs(const InputOptions& options,
                                      const std::vector<std::string>& keys,
                                      const LeaveOut& leave_out);

/// Transforms of the checkpoint's predict list (or valid list), and what they choose.
class InputTransforms {
 public:
  /// `config`: data.transforms of the training. A transform that has nothing to work on but
  /// `left_out`, the target's key when there is none, is left out.
  InputTransforms(const config::Node& config, const std::string& left_out);
  /// Puts the sample through all of them. `spacing_um`: as data.spacing_um, for what follows the
  /// loading. Returns the image as it was loaded, or cropped: for the overlay. Throws: DataError.
  at::Tensor apply(data::Sample& sample,
                   const std::string& image,
                   const std::vector<double>& spacing_um) const;
  /// They say which time points are loaded.
  bool choose_time() const { return choose_time_; }
  /// The files' axes where data.axes does not say: LoadImaged's, or "".
  const std::string& axes() const { return axes_; }

 private:
  data::Transforms transforms_;
  bool choose_time_ = false;
  std::string axes_;
};

/// An input that was looked into.
struct Input {
  std::vector<data::Sample> frames;  // one, or all of a time lapse
  int64_t bytes = 0;                 // that loading one takes: as on file, and as float32
};
/// Throws: DataError, ConfigError, IoError.
Input open_input(const data::Sample& sample,
                 const std::string& image,
                 const InputTransforms& transforms);

}  // namespace cytra::app
