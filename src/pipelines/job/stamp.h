#pragma once
// Stamps: what tells whether the result of an image is still that of a run's model, options and
// files.
#include <string>
#include <string_view>
#include <vector>

#include "data/sample.h"

namespace cytra::pipelines {

/// Keys of `performance` that change no number, for config::text_of().
inline const std::vector<std::string_view> kOptionsOfSpeed{"num_threads",
                                                           "enable_cudnn_benchmark",
                                                           "max_split_size_mb",
                                                           "expandable_segments",
                                                           "memory_fraction"};

/// Differs with the content of the files of `source`. Throws: IoError.
std::string content_of(const data::Source& source);
/// Differs with `content`, with the part of the files that `source` means, and with `settings`.
std::string stamp_of(const data::Source& source,
                     const std::string& content,
                     const std::string& settings);

}  // namespace cytra::pipelines
