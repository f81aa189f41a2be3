#include "device/cuda_graph.h"

#include <cmath>
#include <mutex>
#include <optional>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/recorder.h"

namespace cytra::device {
namespace {

constexpr int kRehearsals = 3;  // libraries choose their algorithms, a tracer specialises
// A share of the norm of the values: sums in another order differ by less.
constexpr double kTolerance = 1e-2;

std::string text_of(const at::Tensor& tensor) {
  return fmt::format(
      "{} ({})", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ","));
}

double norm_of(const at::Tensor& values) {
  return values.to(at::kFloat).square().sum(at::kDouble).sqrt().item<double>();
}

}  // namespace

struct CUDAGraphWrapper::Recorded {
  Call call;                       // whose memory was recorded, too
  std::vector<at::Tensor> inputs;  // in the memory that was recorded
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Recorder::Recording> recording;
  std::mutex mutex;                // one set of inputs and outputs
  std::optional<c10::Event> done;  // the last replay, and the copies of its outputs

  std::vector<at::Tensor> replay(const std::vector<at::Tensor>& given) {
    const c10::Device device = inputs[0].device();
    const c10::DeviceGuard guard(device);
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    const std::lock_guard lock(mutex);
    if (done) done->block(stream);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].copy_(given[i], true);
    recording->replay();
    std::vector<at::Tensor> outputs;
    for (const at::Tensor& output : recording->outputs) outputs.push_back(output.clone());
    if (done) done->record(stream);
    return outputs;
  }
};

CUDAGraphWrapper::CUDAGraphWrapper(Call call, const std::vector<Tensor>& sample)
    : recorded_(std::make_unique<Recorded>()) {
  recorded_->call = std::move(call);
  const c10::InferenceMode inference_mode;
  if (sample.empty()) throw ConfigError("CUDAGraphWrapper: the sample has no tensor");
  const c10::Device device = sample[0].device();
  std::vector<at::Tensor> reversed;
  for (const at::Tensor& tensor : sample) {
    if (tensor.device() != device) {
      throw ConfigError(
          "CUDAGraphWrapper: the sample lies on {} and {}", device.str(), tensor.device().str());
    }
    recorded_->inputs.push_back(tensor.clone());
    reversed.push_back(at::empty_like(tensor).copy_(tensor.flatten().flip(0).view(tensor.sizes())));
  }
  if (has_streams(device)) recorded_->done.emplace(device.type());
  const auto work = [&] { return recorded_->call(recorded_->inputs); };
  try {
    recorded_->recorder = make_recorder(device);
    const std::lock_guard alone(recording_mutex());
    // What waits for the device can't be recorded, and is refused then: other threads may wait now.
    for (int i = 0; i < kRehearsals; ++i) recorded_->recorder->rehearse(work, /*may_wait=*/true);
    recorded_->recording = recorded_->recorder->record(work);
  } catch (const NotRecordable& error) {
    throw ConfigError("CUDAGraphWrapper: {}", error.what());
  }
  const std::vector<at::Tensor> expected = recorded_->call(reversed),
                                played = recorded_->replay(reversed);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double size = norm_of(expected[i]), off = norm_of(played[i].to(at::kFloat) - expected[i]);
    if (std::isfinite(size) && !(off <= kTolerance * size)) {
      throw ConfigError(
          "CUDAGraphWrapper: for other inputs than the sample's, output {} of the recording "
          "differs from the call's (by {:.2g} of {:.2g}): the call depends on more than its inputs",
          i,
          off,
          size);
    }
  }
}

CUDAGraphWrapper::~CUDAGraphWrapper() = default;
CUDAGraphWrapper::CUDAGraphWrapper(CUDAGraphWrapper&&) noexcept = default;

std::vector<Tensor> CUDAGraphWrapper::operator()(const std::vector<Tensor>& inputs) {
  const std::vector<at::Tensor>& own = recorded_->inputs;
  if (inputs.size() != own.size()) {
    throw DataError(
        "CUDAGraphWrapper: {} inputs, the recorded call has {}", inputs.size(), own.size());
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (inputs[i].sizes() == own[i].sizes() && inputs[i].scalar_type() == own[i].scalar_type())
      continue;
    throw DataError(
        "CUDAGraphWrapper: input {} is {}, it was recorded with {}; record another for each shape "
        "and type",
        i,
        text_of(inputs[i]),
        text_of(own[i]));
  }
  const c10::InferenceMode inference_mode;
  return recorded_->replay(inputs);
}

}  // namespace cytra::device
