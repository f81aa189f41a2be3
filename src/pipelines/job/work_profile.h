#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "training/profile.h"

namespace cytra::nn {
struct Model;
}

namespace cytra::pipelines {

/// memory, pytorch, transfers
const std::vector<std::string>& profile_names();
/// A profile of the thread that computes, as trainer.profiler makes it of a training, in the folder
/// `profiler` of a run (of further processes: profiler.rank1, ...). `kind`: one of profile_names();
/// none: null. Of operations the second to fourth batch are recorded: the first one prepares
/// things. `model`: its weights are in memory already; null: none is.
std::unique_ptr<training::Profile> make_profile(const std::optional<std::string>& kind,
                                                c10::Device device,
                                                const std::string& run_folder,
                                                int64_t rank = 0,
                                                const nn::Model* model = nullptr);

}  // namespace cytra::pipelines
