#include "training/processes/processes.h"

#include <csignal>
#include <typeinfo>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <c10/util/Flags.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "device/error.h"
#include "training/processes/process_group.h"
#include "training/processes/shared.h"

C10_DECLARE_int(caffe2_log_level);

namespace cytra::training {
namespace {

using namespace std::chrono_literals;
using c10d::ProcessGroup;

/// Whether an operation failed because another process did not take part. The error's type is
/// found by the text of its name, since Gloo's headers are not there to name it.
bool is_about_others(const std::exception& error) {
  return dynamic_cast<const c10::DistError*>(&error) != nullptr ||
         std::string(typeid(error).name()).find("4gloo") != std::string::npos;
}

}  // namespace

Processes::Processes() = default;

Processes::Processes(ProcessPlace place, double timeout_s, Hooks hooks) : place_(std::move(place)) {
  if (is_alone()) return;
  struct sigaction pipe {};  // Gloo may write to processes that have ended
  if (sigaction(SIGPIPE, nullptr, &pipe) == 0 && pipe.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
  // c10d's warnings are stack traces, and so are its errors on the way to the store; this code
  // reports what they mean.
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
  shared_ = std::make_shared<Shared>();
  shared_->timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1e3));
  if (is_first() && !place_.is_hosted) shared_->server = serve_store(place_, shared_->timeout);
  shared_->place = place_;
  shared_->hooks = std::move(hooks);
  shared_->begin();
}

Processes::~Processes() {
  if (shared_) shared_->stop();
}

void Processes::send(const std::string& text) {
  if (is_alone() || !is_first()) return;
  const auto set = [text](c10d::Store& store) { store.set(kStart, text); };
  shared_->ask(set, shared_->timeout, !place_.is_child);
}

Processes::Received Processes::receive() {
  const auto begin = std::chrono::steady_clock::now();
  const auto ask = [](c10d::Store& store) { return read(store, kStart, kMostStart); };
  try {
    for (;;) {
      if (const auto text = shared_->ask(ask, shared_->timeout + 1s, true)) return {*text};
      if (std::chrono::steady_clock::now() - begin > shared_->timeout)
        throw IoError("rank {}: rank 0 has sent nothing", place_.rank);
      std::this_thread::sleep_for(50ms);
    }
  } catch (const Interrupted& signal) {
    return {"", signal.code};
  } catch (const std::exception& error) {
    if (shared_->is_ending) return {"", exit_code(error)};
    throw;
  }
}

int Processes::join(c10::Device device, const std::string& logs) {
  if (is_alone()) return 0;
  Shared& own = *shared_;
  own.device = device;
  own.logs = logs;
  char machine[256] = "";
  ::gethostname(machine, sizeof machine - 1);
  const auto announce = [key = name_of(place_.rank),
                         name = fmt::format("{}, process {}", machine, ::getpid())](
                            c10d::Store& store) { store.set(key, name); };
  try {
    guard([&] {
      own.ask(announce, own.timeout + 1s, true);
      own.await_all();
      const StorePtr store = connect_store(own.place, own.timeout);
      std::vector<int> sockets;
      own.control = make_gloo(store, own.place, own.timeout, sockets);
      own.group = c10::make_intrusive<ProcessGroup>(
          store, static_cast<int>(place_.rank), static_cast<int>(place_.size));
      std::function<void()> cut = [sockets] { shut_down(sockets); };
      if (device.is_cpu()) {
        own.group->setBackend(c10::kCPU, ProcessGroup::GLOO, own.control);
        own.group->setDefaultBackend(ProcessGroup::GLOO);
      } else {
        const auto nccl = make_nccl(store, own.place, device, own.timeout);
        own.group->setBackend(c10::kCUDA, ProcessGroup::NCCL, nccl);
        own.group->setDefaultBackend(ProcessGroup::NCCL);
        cut = [sockets, nccl] {
          shut_down(sockets);
          nccl->abort();  // its kernels would wait for ever
        };
      }
      const std::lock_guard lock(own.mutex);
      own.cut = std::move(cut);
    });
  } catch (const Interrupted& signal) {
    log::warn("{}", signal.what());
    return signal.code;
  }
  return 0;
}

void Processes::finish() {
  if (is_alone()) return;
  Shared& own = *shared_;
  sum({at::zeros({1})});
  own.is_ending = true;  // processes may end from now on
  if (!own.device.is_cpu()) own.group->getBackend(own.device.type())->shutdown();
  const auto done = [](int64_t rank) { return fmt::format("done/{}", rank); };
  try {
    if (own.server) {  // the store outlives the others' last question
      const auto begin = std::chrono::steady_clock::now();
      for (int64_t rank = 1; rank < place_.size;) {
        const auto ask = [key = done(rank)](c10d::Store& store) { return store.check({key}); };
        if (own.ask(ask, kGrace)) {
          ++rank;
        } else if (std::chrono::steady_clock::now() - begin > 3 * kGrace) {
          log::warn("rank {} did not end by itself", rank++);
        } else {
          std::this_thread::sleep_for(10ms);
        }
      }
    } else if (!place_.is_hosted) {
      own.ask([key = done(place_.rank)](c10d::Store& store) { store.set(key, std::string("1")); },
              kGrace);
    }
  } catch (const std::exception& error) {  // all is done
    log::debug("{}", error.what());
  }
  own.stop();
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

at::Tensor Processes::gather(const at::Tensor& rows) {
  if (is_alone()) return rows;
  const at::Tensor counts = at::zeros({place_.size}, at::kLong);
  counts[place_.rank] = rows.size(0);
  sum({counts});
  const auto all_rows = counts.sum().item<int64_t>();
  const at::Tensor all = at::zeros({all_rows, rows.size(1)}, at::kDouble);
  all.narrow(0, counts.slice(0, 0, place_.rank).sum().item<int64_t>(), rows.size(0)).copy_(rows);
  if (all_rows > 0) sum({all});  // the others' rows are 0 here
  return all;
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
  Shared& own = *shared_;
  const auto send_error = [&](const std::exception& error, int code) {
    own.is_ending = true;
    own.end_with(fmt::format("{} rank {}: {}", code, place_.rank, error.what()));
    own.flush();
    if (own.server) std::this_thread::sleep_for(2 * kTick);  // the store goes with us
  };
  try {
    work();
  } catch (const Error& error) {
    if (!own.is_ending) send_error(error, exit_code(error));
    throw;
  } catch (const std::exception& error) {
    if (own.is_ending) throw;
    if (!is_about_others(error) && !own.has_end()) {
      send_error(error, device::is_out_of_memory(error) ? 5 : 1);
      throw;
    }
    log::write(log::Level::debug, error.what());
    own.is_ending = true;
    if (!own.device.is_cpu() && own.cut) own.cut();
    own.explain(error.what());
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
