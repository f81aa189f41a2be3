#include "training/processes.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <c10/util/Flags.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "perf/device.h"
#include "training/process_group.h"
#include "training/processes_shared.h"

C10_DECLARE_int(caffe2_log_level);

namespace cytra::training {
namespace {

using namespace std::chrono_literals;
using c10d::ProcessGroup;

/// Whether an operation failed since another process did not take part.
bool is_about_others(const std::string& what) {
  for (const char* word : {"gloo", "NCCL", "onnection", "imed out", "imeout", "peer", "ocket"}) {
    if (what.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Processes::Processes() = default;

Processes::Processes(Place place, double timeout_s, std::function<std::string()> lost)
    : place_(std::move(place)) {
  if (is_alone()) return;
  shared_ = std::make_unique<Shared>();
  shared_->place = place_;
  shared_->timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1e3));
  shared_->lost = std::move(lost);
  // c10d's warnings are stack traces, and so are its errors on the way to the store; what they mean
  // is told here.
  constexpr int kErrors = 2, kFatal = 3;
  const bool is_quiet = std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr;
  if (is_quiet) FLAGS_caffe2_log_level = kFatal;
  shared_->store = shared_->connect(is_first() && !place_.is_hosted);
  if (is_quiet) FLAGS_caffe2_log_level = kErrors;
  place_.port = shared_->place.port;
  shared_->life = std::thread([own = shared_.get()] { own->live(); });
}

Processes::~Processes() = default;

void Processes::send(const std::string& text) {
  if (!is_alone() && is_first()) shared_->store->set(kStart, text);
}

Processes::Received Processes::receive() {
  const auto begin = std::chrono::steady_clock::now();
  try {
    while (!shared_->store->check({kStart})) {
      if (shared_->store->check({kEnd}))
        return {"", std::max(1, std::atoi(text_of(shared_->store->get(kEnd)).c_str()))};
      if (std::chrono::steady_clock::now() - begin > shared_->timeout)
        throw IoError(fmt::format("rank {}: rank 0 has sent nothing", place_.rank));
      const int caught = place_.is_child ? 0 : signal_received();
      if (caught != 0) return {"", signal_exit_code(caught)};
      std::this_thread::sleep_for(50ms);
    }
    return {text_of(shared_->store->get(kStart))};
  } catch (const c10::Error&) {
    throw IoError(fmt::format("rank {}: rank 0 ended before the training began", place_.rank));
  }
}

void Processes::join(c10::Device device, const std::string& logs) {
  if (is_alone()) return;
  Shared& own = *shared_;
  own.device = device;
  own.logs = logs;
  char machine[256] = "";
  ::gethostname(machine, sizeof machine - 1);
  own.store->set(name_of(place_.rank), fmt::format("{}, process {}", machine, ::getpid()));
  guard([&] {
    own.await_all();
    own.control = make_gloo(own.store, place_, own.timeout);
    own.group = c10::make_intrusive<ProcessGroup>(
        own.store, static_cast<int>(place_.rank), static_cast<int>(place_.size));
    if (device.is_cpu()) {
      own.group->setBackend(c10::kCPU, ProcessGroup::GLOO, own.control);
      own.group->setDefaultBackend(ProcessGroup::GLOO);
    } else {
      own.group->setBackend(
          c10::kCUDA, ProcessGroup::NCCL, make_nccl(own.store, place_, device, own.timeout));
      own.group->setDefaultBackend(ProcessGroup::NCCL);
    }
  });
}

void Processes::finish() {
  if (is_alone()) return;
  sum({at::zeros({1})});
  shared_->stop();
  if (shared_->server) {  // the store outlives the others' last question
    for (int64_t rank = 1; rank < place_.size; ++rank) {
      try {
        shared_->store->wait({fmt::format("done/{}", rank)}, 3 * kGrace);
      } catch (const c10::Error&) {
        log::warn("rank {} did not end by itself", rank);
      }
    }
  } else if (!place_.is_hosted) {
    shared_->store->set(fmt::format("done/{}", place_.rank), std::string("1"));
  }
}

void Processes::sum(const std::vector<at::Tensor>& tensors) {
  if (is_alone() || tensors.empty()) return;
  guard([&] {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& tensor : tensors)
      flat.push_back(tensor.detach().to(c10::kCPU, at::kDouble).flatten());
    std::vector<at::Tensor> all{at::cat(flat)};
    ++shared_->operations;
    shared_->control->allreduce(all)->wait();
    int64_t begin = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.detach().copy_(all[0].slice(0, begin, begin + tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  });
}

at::Tensor Processes::mean(const at::Tensor& value) {
  if (is_alone()) return value;
  std::vector<at::Tensor> all{value.detach() / place_.size};
  guard([&] { group()->getBackend(shared_->device.type())->allreduce(all)->wait(); });
  return all[0];
}

void Processes::broadcast(const std::vector<at::Tensor>& tensors) {
  if (is_alone() || tensors.empty()) return;
  constexpr std::size_t kBytes = std::size_t{250} << 20;
  guard([&] { c10d::broadcast_coalesced(group(), tensors, kBytes); });
}

int Processes::others_signal() const {
  return is_alone() ? 0 : shared_->signal.load();
}

void Processes::guard(const std::function<void()>& work) {
  if (is_alone() || shared_->is_ending) return work();
  const auto tell = [&](const std::exception& error, int code) {
    shared_->is_ending = true;
    try {
      Shared::end_with(*shared_->store,
                       fmt::format("{} rank {}: {}", code, place_.rank, error.what()));
      if (shared_->server) std::this_thread::sleep_for(2 * kTick);  // the store goes with us
    } catch (const std::exception&) {                               // nobody is there to be told
    }
  };
  try {
    work();
  } catch (const Error& error) {
    if (!shared_->is_ending) tell(error, exit_code(error));
    throw;
  } catch (const std::exception& error) {
    if (shared_->is_ending) throw;
    if (!is_about_others(error.what())) {
      tell(error, perf::is_out_of_memory(error) ? 5 : 1);
      throw;
    }
    log::write(log::Level::debug, error.what());
    shared_->is_ending = true;
    if (!shared_->device.is_cpu() && shared_->group)
      shared_->group->getBackend(shared_->device.type())->abort();  // its kernels wait for ever
    shared_->explain(error.what());
  }
}

bool Processes::is_speaker() const {
  return is_first() || shared_->is_first_gone;
}

c10::intrusive_ptr<ProcessGroup> Processes::group() {
  ++shared_->operations;
  return shared_->group;
}

}  // namespace cytra::training
