#include "training/processes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <c10/util/Flags.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/strings.h"
#include "training/process_group.h"

C10_DECLARE_int(caffe2_log_level);

namespace cytra::training {
namespace {

using namespace std::chrono_literals;
using c10d::ProcessGroup;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Keys of the store.
constexpr const char *kStart = "start",  // what rank 0 sends
    *kSignal = "signal",                 // the number of a signal that somebody got
        *kEnd = "end";                   // the first failure: "<exit code> <message>"
constexpr auto kTick = 500ms,            // between two signs of life
    kSilence = 3000ms,                   // without one a process counts as lost
    kGrace = 15000ms;                    // for ending by itself after a failure elsewhere

std::string life_of(int64_t rank) {
  return fmt::format("life/{}", rank);
}
std::string name_of(int64_t rank) {
  return fmt::format("name/{}", rank);
}
std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

/// Throws the error that ended another process, so that this one has the same exit code.
[[noreturn]] void throw_end(const std::string& end) {
  const int code = std::atoi(end.c_str());
  const std::string message = end.substr(end.find(' ') + 1);
  switch (code) {
    case 2:
      throw DataError(message);
    case 5:
      throw MemoryError(message);
    case 6:
      throw DivergedError(message);
    case 1:
      throw std::runtime_error(message);
    default:
      throw IoError(message);
  }
}

/// Whether an operation failed since another process did not take part.
bool is_about_others(const std::string& what) {
  for (const char* word : {"gloo", "NCCL", "onnection", "imed out", "imeout", "peer", "ocket"}) {
    if (what.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

struct Processes::Shared {
  Place place;
  std::chrono::milliseconds timeout;
  c10::intrusive_ptr<c10d::TCPStore> server;  // rank 0 keeps it alive
  StorePtr store;                             // of the thread that trains
  c10::intrusive_ptr<ProcessGroup> group;     // on the device
  c10::intrusive_ptr<c10d::Backend> control;  // Gloo
  c10::Device device = c10::kCPU;
  std::string logs;
  std::function<std::string()> lost;
  std::atomic<int64_t> operations{0};
  std::atomic<int> signal{0};
  std::atomic<bool> is_ending{false}, is_first_gone{false};

  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::thread life;

  ~Shared() { stop(); }
  void stop() {
    {
      const std::lock_guard lock(mutex);
      is_done = true;
    }
    changed.notify_all();
    if (life.joinable()) life.join();
  }

  StorePtr connect(bool is_server) {
    c10d::TCPStoreOptions options;
    options.port = place.port;
    options.isServer = is_server;
    options.waitWorkers = false;
    options.timeout = timeout;
    try {
      auto tcp = c10::make_intrusive<c10d::TCPStore>(place.host, options);
      if (is_server) {
        server = tcp;
        place.port = tcp->getPort();
      }
      return c10::make_intrusive<c10d::PrefixStore>("cytra/" + place.attempt, tcp);
    } catch (const std::exception& error) {
      throw IoError(fmt::format(
          "rank {} of {}: rank 0 can't be reached at {}:{} (MASTER_ADDR, MASTER_PORT): {}",
          place.rank,
          place.size,
          place.host,
          place.port,
          split(error.what(), '\n').front()));
    }
  }

  /// Names of ranks with their machine and log, for a message.
  std::string describe(const std::vector<int64_t>& ranks) {
    std::vector<std::string> names;
    for (const int64_t rank : ranks) {
      const std::string log = rank == 0 ? logs + ".log" : fmt::format("{}.rank{}.log", logs, rank);
      names.push_back(fmt::format(
          "rank {} ({}; log: {})",
          rank,
          store->check({name_of(rank)}) ? text_of(store->get(name_of(rank))) : "never came",
          log));
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  /// The first failure of all: what it says is what all processes say.
  static std::string end_with(c10d::Store& store, const std::string& text) {
    return store.compareSet(kEnd, std::string(), text);
  }

  /// Until all have told their names.
  void await_all() {
    std::vector<std::string> names;
    std::vector<int64_t> missing;
    for (int64_t rank = 0; rank < place.size; ++rank) names.push_back(name_of(rank));
    const auto begin = std::chrono::steady_clock::now();
    while (!store->check(names)) {
      if (store->check({kEnd})) {
        is_ending = true;
        throw_end(text_of(store->get(kEnd)));
      }
      if (std::chrono::steady_clock::now() - begin > timeout) {
        for (int64_t rank = 0; rank < place.size; ++rank) {
          if (!store->check({name_of(rank)})) missing.push_back(rank);
        }
        throw IoError(fmt::format("never came: {} (trainer.process_timeout)", describe(missing)));
      }
      std::this_thread::sleep_for(50ms);
    }
  }

  /// "<tick> <operations>" of every process; "" of one that never came.
  std::vector<std::string> lives() {
    std::vector<std::string> all;
    for (int64_t rank = 0; rank < place.size; ++rank)
      all.push_back(store->check({life_of(rank)}) ? text_of(store->get(life_of(rank))) : "");
    return all;
  }

  /// Finds out why an operation failed. Throws.
  [[noreturn]] void explain(const std::string& what) {
    const bool is_late =
        what.find("imed out") != std::string::npos || what.find("imeout") != std::string::npos;
    std::string end;
    try {
      const std::vector<std::string> before = lives();
      for (auto waited = 0ms; waited < kSilence && end.empty(); waited += 100ms) {
        if (store->check({kEnd})) end = text_of(store->get(kEnd));
        if (end.empty() && lost) {
          const std::string died = lost();
          if (!died.empty()) end = end_with(*store, "4 " + died);
        }
        if (end.empty()) std::this_thread::sleep_for(100ms);
      }
      if (end.empty()) {
        const std::vector<std::string> after = lives();
        std::vector<int64_t> silent, behind;
        int64_t least = INT64_MAX;
        for (int64_t rank = 0; rank < place.size; ++rank) {
          const auto at = static_cast<std::size_t>(rank);
          if (rank != place.rank && before[at] == after[at]) silent.push_back(rank);
          const std::size_t space = after[at].find(' ');
          const int64_t count =
              space == std::string::npos ? -1 : std::atoll(after[at].c_str() + space);
          if (count < least) behind.clear();
          least = std::min(least, count);
          if (count == least) behind.push_back(rank);
        }
        if (!silent.empty()) {
          is_first_gone = silent.front() == 0;
          end = end_with(*store,
                         "4 stopped answering: " + describe(silent) +
                             ": killed, out of memory, or its machine is gone");
        } else if (is_late) {
          end = end_with(
              *store,
              fmt::format(
                  "4 waited {} (trainer.process_timeout) for {}: it lives, but is busy elsewhere",
                  format_seconds(std::chrono::duration<double>(timeout).count()),
                  describe(behind)));
        } else {
          end =
              end_with(*store, fmt::format("4 rank {}: {}", place.rank, split(what, '\n').front()));
        }
      }
    } catch (const c10::Error&) {  // the store went with rank 0
      is_first_gone = true;
      end = "4 stopped answering: rank 0, where the processes meet; log: " + logs + ".log";
    }
    throw_end(end);
  }

  /// A thread of its own: this process's signs of life, and the news from others.
  void live() {
    std::chrono::steady_clock::time_point since{};
    std::string end;
    try {
      const StorePtr own = connect(false);
      bool has_told = false;
      for (int64_t tick = 0; end.empty(); ++tick) {
        own->set(life_of(place.rank), fmt::format("{} {}", tick, operations.load()));
        if (!has_told && signal_received() != 0) {
          own->set(kSignal, std::to_string(signal_received()));
          has_told = true;
        }
        if (signal == 0 && own->check({kSignal}))
          signal = std::atoi(text_of(own->get(kSignal)).c_str());
        if (own->check({kEnd})) end = text_of(own->get(kEnd));
        if (lost && end.empty()) {
          const std::string died = lost();
          if (!died.empty()) end = end_with(*own, "4 " + died);
        }
        std::unique_lock lock(mutex);
        if (changed.wait_for(lock, kTick, [this] { return is_done; })) return;
      }
    } catch (const std::exception&) {
      end = "4 stopped answering: rank 0, which the other processes meet at";
    }
    // The thread that trains should notice by itself, unless it waits for a device or a disk.
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, kGrace, [this] { return is_done; }) || is_ending) return;
    log::write(log::Level::error, end.substr(end.find(' ') + 1));
    std::_Exit(std::max(1, std::atoi(end.c_str())));
  }
};

Processes::Processes() = default;

Processes::Processes(Place place, double timeout_s, std::function<std::string()> lost)
    : place_(std::move(place)) {
  if (is_alone()) return;
  shared_ = std::make_unique<Shared>();
  shared_->place = place_;
  shared_->timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1e3));
  shared_->lost = std::move(lost);
  constexpr int kErrors = 2;  // c10d's warnings are stack traces; what they mean is told here
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kErrors;
  shared_->store = shared_->connect(is_first() && !place_.is_hosted);
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
        shared_->store->wait({fmt::format("done/{}", rank)}, kGrace);
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

std::vector<at::Tensor> Processes::gather(const at::Tensor& bytes) {
  if (is_alone()) return {bytes};
  std::vector<at::Tensor> own{bytes.contiguous()};
  std::vector<std::vector<at::Tensor>> all(1);
  for (int64_t rank = 0; rank < place_.size; ++rank) all[0].push_back(at::empty_like(own[0]));
  ++shared_->operations;
  guard([&] { shared_->control->allgather(all, own)->wait(); });
  return all[0];
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
      tell(error, dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ? 5 : 1);
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
