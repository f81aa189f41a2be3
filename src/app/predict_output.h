#pragma once
// What `predict` writes: names and formats.
#include <map>
#include <set>
#include <string>

#include "config/options.h"
#include "data/sample.h"
#include "io/image.h"

namespace cytra::app {

struct PredictOptions {
  std::string save = "mask", format = "auto";
  double threshold = 0.5;
  bool overlay = true;
  template <class V>
  void visit(V& v) {
    v("save",
      save,
      "mask: class numbers, or a channel of 0 and 1 per mask; probability or logits: one float32 "
      "channel per class or mask",
      {"mask", "probability", "logits"});
    v("format",
      format,
      "auto: NIfTI, OME-Zarr, NumPy and (of masks) PNG as the image, else OME-TIFF",
      {"auto", "ome_tiff", "nifti", "ome_zarr", "npy", "png"});
    v("threshold", threshold, "of a mask's probability", 0, 1);
    v("overlay", overlay, "also write a PNG of the mask over the image");
  }
  void check() const;
};

/// A name for each output: the image's without folder and extension, the scene and time point that
/// were chosen, and a number when two would share it.
class OutputNames {
 public:
  std::string next(const data::Source& source);

 private:
  std::set<std::string> taken_;
  std::map<std::string, int64_t> numbers_;  // the last one given, by name
};

/// Writes the prediction of the image `source` beside its geometry, as `stem` with the extension of
/// the format; returns the path. Throws: DataError when the format can't hold it; as AtomicFile.
std::string write_prediction(const std::string& stem,
                             const std::string& source,
                             const io::Image& image,
                             const PredictOptions& options);

}  // namespace cytra::app
