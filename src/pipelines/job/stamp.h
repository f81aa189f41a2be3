#pragma once
// Stamps: texts that show whether the result of an image still belongs to a run's model, options
// and files.
#include <string>
#include <string_view>
#include <vector>

#include "data/sample/sample.h"

namespace cytra::pipelines {

/// Keys of `performance` that do not change results, for config::text_of().
inline const std::vector<std::string_view> kOptionsOfSpeed{"num_threads",
                                                           "enable_cudnn_benchmark",
                                                           "max_split_size_mb",
                                                           "expandable_segments",
                                                           "memory_fraction"};

/// A fingerprint of the content of the sample's files, without those of the key `left_out` (a
/// target's). Throws: IoError.
std::string content_of(const data::Sample& sample, const std::string& left_out = "");
/// A fingerprint of `content`, of the part of these files that the sample uses, and of `settings`.
std::string stamp_of(const data::Sample& sample,
                     const std::string& content,
                     const std::string& settings,
                     const std::string& left_out = "");

}  // namespace cytra::pipelines
