// Part of pipelines/predict/uncertainty_table.h: the figures of a record, which cytra-predict has
// not.
#include "pipelines/predict/uncertainty_table.h"

namespace cytra::pipelines {

std::vector<ImageUncertainty> uncertainties_of(DoneRecord& record, const std::string& form) {
  record.read();
  std::vector<ImageUncertainty> images;
  for (const auto& [name, known] : record.lines()) {
    const config::Node line = record.line(name, known.stamp, known.image);
    if (const config::Node* mean = line.find_direct(form))
      images.emplace_back(mean->as<double>(), known.image);
  }
  return images;
}

}  // namespace cytra::pipelines
