#pragma once
#include <string>

#include "pipelines/job/done_record.h"

namespace cytra::pipelines {

/// uncertainty.csv of a run's folder, by the figures that the record's images have under `form`
/// (entropy, variance): image, and the mean over its voxels and channels, most uncertain first.
/// Returns its path. Throws: as AtomicFile, DoneRecord::line().
std::string write_uncertainty_table(DoneRecord& record,
                                    const std::string& folder,
                                    const std::string& form);

}  // namespace cytra::pipelines
