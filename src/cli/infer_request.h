#pragma once
// The question what the data say about open values of a configuration.
#include <string>
#include <vector>

#include "config/composer.h"

namespace cytra::cli {

/// The argument of the engine's `extern "C" int cytra_infer(cytra::cli::InferRequest&)`, which
/// puts overrides inferred from the data before the typed ones, so that those win. Throws:
/// ConfigError where several interpretations fit, with what to type.
struct InferRequest {
  const config::Composer& composer;
  std::string primary, entry;
  std::vector<std::string> overrides;
};

}  // namespace cytra::cli
