#pragma once
#include <optional>
#include <string>
#include <vector>

#include "pipelines/batch_segment/batch_segment.h"

namespace cytra::pipelines {

/// The images that data.path names, with names of their own and views. `view`: this one alone.
/// Throws: ConfigError, DataError.
std::vector<SegmentInput> list_segment_inputs(const std::string& path,
                                              const std::optional<std::string>& view);

}  // namespace cytra::pipelines
