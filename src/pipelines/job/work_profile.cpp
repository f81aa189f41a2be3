#include "pipelines/job/work_profile.h"

#include <fmt/format.h>

#include "device/backend.h"
#include "nn/model.h"
#include "training/profiles.h"

namespace cytra::pipelines {

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names{"memory", "pytorch", "transfers"};
  return names;
}

std::unique_ptr<training::Profile> make_profile(const std::optional<std::string>& kind,
                                                c10::Device device,
                                                const std::string& run_folder,
                                                int64_t rank,
                                                const nn::Model* model) {
  constexpr int64_t kBatches = 3;  // that are looked at closely
  if (!kind) return nullptr;
  const std::string end = rank == 0 ? "" : fmt::format(".rank{}", rank);
  training::Profile::Settings settings{"profile", run_folder + "/profiler" + end, "batch"};
  if (*kind == "memory") {
    return training::memory_profile(std::move(settings),
                                    device.type(),
                                    model ? model->parameters() : std::vector<at::Tensor>(),
                                    "weights",
                                    kBatches);
  }
  if (*kind == "transfers") return training::transfer_profile(std::move(settings), device);
  training::OperationProfileOptions options;
  options.schedule = {1, 0, kBatches, 1};
  options.recorded.cuda = device::is_accelerator(device);
  options.trace = [](int64_t) { return std::string("operations"); };
  return training::operation_profile(std::move(settings), std::move(options));
}

}  // namespace cytra::pipelines
