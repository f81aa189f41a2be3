#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cytra::pipelines {

/// The mean of an uncertainty over an image's voxels and channels, with the image's name.
using ImageUncertainty = std::pair<double, std::string>;

/// uncertainty.csv of a run's folder, by its images' figures: image, and the mean of `form`
/// (entropy, variance), most uncertain first. Returns its path. Throws: as AtomicFile.
std::string write_uncertainty_table(std::vector<ImageUncertainty> images,
                                    const std::string& folder,
                                    const std::string& form);

}  // namespace cytra::pipelines
