#pragma once
// The number of the checkpoints' format, which says to a later or earlier Cytra what to expect.
#include <map>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::nn {

/// Grows with each change that an earlier Cytra can't read, or would read wrong. It is in the
/// metadata under kFormatKey; a file without it is of format 1.
constexpr int64_t kCheckpointFormat = 1;
constexpr char kFormatKey[] = "cytra_format";

/// The format of a checkpoint; every reader of one checks it. Throws: DataError where it is later
/// than kCheckpointFormat, or no number.
int64_t format_of(const std::map<std::string, std::string>& metadata, const std::string& path);

/// A key of the configuration that has another name since `format`.
struct MovedSince {
  int64_t format;
  std::string before, now;
};
/// The moved keys of all formats until now, oldest first.
const std::vector<MovedSince>& moved_keys_of_checkpoints();
/// Renames the keys in the configuration of a checkpoint of `format` to those of today.
void carry_over(config::Node& config, int64_t format, const std::vector<MovedSince>& moved);

}  // namespace cytra::nn
