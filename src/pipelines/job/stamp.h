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

/// Differs with the content of the files of `sample`, but those of the key `left_out`: a target's.
/// Throws: IoError.
std::string content_of(const data::Sample& sample, const std::string& left_out = "");
/// Differs with `content`, with the part of these files that the sample means, and with `settings`.
std::string stamp_of(const data::Sample& sample,
                     const std::string& content,
                     const std::string& settings,
                     const std::string& left_out = "");

}  // namespace cytra::pipelines
