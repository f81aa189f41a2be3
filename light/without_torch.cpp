// What the sources of `cytra-predict` ask of torch's side of the house, and what it is without
// torch: no GPU, no networks of its own, no profiles.
#include <stdexcept>

#include "device/backend.h"
#include "export/compile.h"
#include "inference/engines/traced.h"
#include "nn/model.h"
#include "pipelines/job/work_profile.h"

namespace cytra {

namespace device {
namespace {

class NoGpu final : public Backend {
 public:
  NoGpu() : Backend(c10::kCUDA, "cuda", {}) {}
  Absence find() const override { return {"this program runs models on a CPU"}; }
  c10::Device current() const override { return c10::kCPU; }
  std::string describe(c10::Device) const override { return "none"; }
  int64_t peak_memory(c10::Device) const override { return 0; }
  int64_t used_memory(c10::Device) const override { return 0; }
  int64_t free_memory(c10::Device) const override { return 0; }
  void reset_peak_memory(c10::Device) const override {}
  void empty_cache(c10::Device) const override {}
  std::string why_no_tf32(c10::Device) const override { return "TF32 needs an NVIDIA GPU"; }
  std::string why_slow(c10::ScalarType, c10::Device) const override { return ""; }
};

}  // namespace

const Backend& cuda_backend() {
  static const NoGpu none;
  return none;
}

}  // namespace device

namespace nn {

at::Tensor Model::features(const at::Tensor&) {
  return {};
}
std::vector<std::string> Model::foreign_batch_norms() const {
  return {};
}

}  // namespace nn

namespace exporting {

std::string to_torchscript(const Forward&,
                           const Tensor&,
                           const std::map<std::string, std::string>&) {
  throw std::logic_error("an exported model is not traced");
}

}  // namespace exporting

Tensor inference::windows_to_trace(const Tensor& example) {
  return example;
}

const std::vector<std::string>& pipelines::profile_names() {
  static const std::vector<std::string> names{"memory", "pytorch", "transfers"};  // refused later
  return names;
}

}  // namespace cytra
