#include "pipelines/predict/uncertainty_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "io/csv.h"

namespace cytra::pipelines {

std::string write_uncertainty_table(std::vector<ImageUncertainty> images,
                                    const std::string& folder,
                                    const std::string& form) {
  std::ranges::sort(images, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<std::vector<std::string>> rows;
  for (const auto& [mean, image] : images)
    rows.push_back({io::safe_cell(image), fmt::format("{:.6g}", mean)});
  std::string path = folder + "/uncertainty.csv";
  io::write_table(path, {"image", "mean_" + form}, rows);
  return path;
}

}  // namespace cytra::pipelines
