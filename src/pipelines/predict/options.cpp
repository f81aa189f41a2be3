#include "pipelines/predict/options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "inference/outputs/output.h"

namespace cytra::pipelines {

std::vector<std::string> contour_choices() {
  std::vector<std::string> choices = inference::result_outputs("contours");
  choices.insert(choices.begin(), "none");
  choices.emplace_back("both");
  return choices;
}

void PredictOptions::check() const {
  if (format == "png" && save != "auto" && save != "mask" && save != "labels" &&
      postprocess.list.empty()) {
    throw ConfigError(fmt::format(
        "predict.format=png holds no float32 values as predict.save={} has; use ome_tiff, nifti, "
        "ome_zarr or npy",
        save));
  }
  if (frames == "together" && format != "auto" && format != "ome_tiff" && format != "ome_zarr") {
    throw ConfigError(fmt::format(
        "predict.frames=together: predict.format={} has no time points here, expected ome_tiff or "
        "ome_zarr",
        format));
  }
}

std::vector<std::string> PredictOptions::outputs() const {
  std::vector<std::string> names{"image"};
  if (measurements) names.emplace_back("table");
  if (contours == "both") {
    for (const std::string& name : inference::result_outputs("contours")) names.push_back(name);
  } else if (contours != "none") {
    names.push_back(contours);
  }
  if (overlay) names.emplace_back("overlay");
  return names;
}

}  // namespace cytra::pipelines
