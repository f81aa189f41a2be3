#pragma once
// What networks that were written elsewhere share: their options beside what the file says.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cytra::nn {

/// The number of the result that has the name `output` or is that number. Throws: ConfigError.
std::size_t result_called(const std::string& path,
                          const std::string& output,
                          const std::vector<std::string>& names);

/// Throws: ConfigError where model.`key` is given as another number than the network's own.
void expect_as_given(const std::string& path,
                     const char* key,
                     std::optional<int64_t> given,
                     int64_t own);

/// model.divisor. Throws: ConfigError unless it has a number from 1 for each dimension.
std::vector<int64_t> checked_divisor(const std::vector<int64_t>& given, int64_t spatial_dims);

}  // namespace cytra::nn
