#include "pipelines/predict/uncertainty_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "io/csv.h"

namespace cytra::pipelines {

std::string write_uncertainty_table(DoneRecord& record,
                                    const std::string& folder,
                                    const std::string& form) {
  record.read();
  std::vector<std::pair<double, std::string>> means;
  for (const auto& [name, known] : record.lines()) {
    const config::Node line = record.line(name, known.stamp, known.image);
    if (const config::Node* mean = line.find_direct(form))
      means.emplace_back(-mean->as<double>(), known.image);
  }
  std::sort(means.begin(), means.end());
  std::vector<std::vector<std::string>> rows;
  for (const auto& [less, image] : means)
    rows.push_back({io::safe_cell(image), fmt::format("{:.6g}", -less)});
  std::string path = folder + "/uncertainty.csv";
  io::write_table(path, {"image", "mean_" + form}, rows);
  return path;
}

}  // namespace cytra::pipelines
