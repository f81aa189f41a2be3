#pragma once
// What the data say of a configuration that leaves it open.
#include <string>
#include <vector>

#include "config/composer.h"

namespace cytra::cli {

/// What the engine's `extern "C" int cytra_infer(cytra::cli::InferRequest&)` is asked; puts what
/// the data say before the overrides, so that what is typed wins. Throws: ConfigError where several
/// readings fit, with what to type.
struct InferRequest {
  const config::Composer& composer;
  std::string primary, entry;
  std::vector<std::string> overrides;
};

}  // namespace cytra::cli
