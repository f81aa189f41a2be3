#include "nn/exported/options.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::nn {

void ExportedOptions::check() const {
  const bool has_heads =
      std::ranges::any_of(heads.map, [](const auto& head) { return head.second.is_map(); });
  if (has_heads && (output || deep_supervision))
    throw ConfigError("model.heads: expected no model.output and no model.deep_supervision");
}

std::size_t result_called(const std::string& path,
                          const char* key,
                          const std::string& output,
                          const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (output == names[i] || output == std::to_string(i)) return i;
  throw ConfigError("model.{}: {} has no result '{}', expected one of {}.{}",
                    key,
                    path,
                    printable(output),
                    join(names, ", "),
                    suggestion(output, names));
}

void expect_as_given(const std::string& path,
                     const char* key,
                     std::optional<int64_t> given,
                     int64_t own) {
  if (!given || *given == own) return;
  throw ConfigError(
      "model.{}: {}, but the network of {} has {}; set it to {}, or export another network",
      key,
      *given,
      path,
      own,
      own);
}

std::vector<int64_t> checked_divisor(const std::vector<int64_t>& given, int64_t spatial_dims) {
  if (std::ssize(given) != spatial_dims || *std::ranges::min_element(given) < 1)
    throw ConfigError("model.divisor: expected {} numbers from 1", spatial_dims);
  return given;
}

}  // namespace cytra::nn
