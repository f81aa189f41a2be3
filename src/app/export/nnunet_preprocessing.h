#pragma once
// The preprocessing of an image in nnU-Net's words.
#include <string>

#include "app/export/nnunet.h"

namespace cytra::app {

/// Throws: ConfigError that begins with the format and goes on with `what`.
[[noreturn]] void refuse_for_nnunet(const std::string& what);

/// The preprocessing in the words of plans.json, which are the options of NnunetPreprocessingd.
/// `reader`: nnU-Net's. Throws: ConfigError naming what nnU-Net can't say.
config::Node nnunet_preprocessing(const inference::LoadedModel& model,
                                  const NnunetOptions& options,
                                  const std::string& reader);

}  // namespace cytra::app
