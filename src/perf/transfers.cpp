#include "perf/transfers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/util/Type.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::perf {
namespace {

/// What torch calls each part of a backward pass, before its name.
constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";

/// A function of torch, or a scope, that is open.
struct Frame {
  uint64_t number;
  const char* name;
  bool is_scope;
};

std::atomic<TransferWatch*> the_watch{nullptr};
thread_local std::vector<Frame> frames;
thread_local uint64_t frames_so_far = 0;
thread_local uint64_t counted_in = 0;  // the frame whose insides are not counted again; 0: none

/// Kept by torch from a function's begin to its end. They do not always end in the order of their
/// beginnings: a profiler's mark of a step ends within the hook of a callback.
struct OpenFrame final : at::ObserverContext {
  explicit OpenFrame(uint64_t number) : number(number) {}
  uint64_t number;
};

/// Whether the operation's result, or the result's size, depends on values: the host waits for it.
bool reads_values(std::string_view name) {
  constexpr std::array<std::string_view, 8> kReaders{"aten::_local_scalar_dense",
                                                     "aten::nonzero",
                                                     "aten::masked_select",
                                                     "aten::equal",
                                                     "aten::_unique2",
                                                     "aten::unique_dim",
                                                     "aten::unique_consecutive",
                                                     "aten::bincount"};
  return std::ranges::find(kReaders, name) != kReaders.end();
}

/// Whether the dimensions lie in memory in the same order.
bool has_same_order(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t i = 0; i < a.dim(); ++i) {
    for (int64_t k = i + 1; k < a.dim(); ++k) {
      if (a.size(i) > 1 && a.size(k) > 1 &&
          (a.stride(i) < a.stride(k)) != (b.stride(i) < b.stride(k)))
        return false;
    }
  }
  return true;
}

Transfer kind_of_copy(const at::Tensor& to, const at::Tensor& from) {
  if (to.is_cpu() && !from.is_cpu()) return Transfer::to_host;
  if (!to.is_cpu() && from.is_cpu()) return Transfer::to_device;
  if (to.scalar_type() != from.scalar_type()) return Transfer::cast;
  const bool is_layout = to.layout() == at::kStrided && from.layout() == at::kStrided &&
                         to.sizes() == from.sizes() && from.is_non_overlapping_and_dense() &&
                         !has_same_order(to, from);
  return is_layout ? Transfer::layout : Transfer::copy;
}

/// "cytra::nn::pad" of "cytra::nn::pad(at::Tensor const&) const".
std::string function_name(const char* symbol) {
  const std::string name = c10::demangle(symbol);
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::size_t end = name.find('(');
  while (end != std::string::npos && name.compare(end, kAnonymous.size(), kAnonymous) == 0)
    end = name.find('(', end + 1);
  return name.substr(0, end);
}

/// What lies at an address of the stack.
struct Code {
  bool is_torch = false;   // of its libraries
  bool is_inline = false;  // of its headers
  std::string name;        // "": in no library's table
  std::string place;       // "library+0xoffset", for addr2line
};

Code code_at(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0) return {};
  const std::string_view path = info.dli_fname;
  const std::string_view library = path.substr(path.rfind('/') + 1);
  Code code;
  code.is_torch = library.starts_with("libtorch") || library.starts_with("libc10");
  code.place =
      fmt::format("{}+{:#x}",
                  library,
                  static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase));
  if (info.dli_sname == nullptr) return code;
  for (const char* space : {"_ZN2at", "_ZNK2at", "_ZN3c10", "_ZNK3c10", "_ZN5torch", "_ZNK5torch"})
    code.is_inline = code.is_inline || std::string_view(info.dli_sname).starts_with(space);
  code.name = function_name(info.dli_sname);
  return code;
}

/// The newest function on the stack that is not torch's; where it has no name, its place and the
/// newest with one.
std::string calling_code() {
  static std::mutex mutex;
  static std::unordered_map<const void*, Code> known;  // dladdr() reads all names of a library
  std::array<void*, 96> addresses{};
  const int count = ::backtrace(addresses.data(), static_cast<int>(addresses.size()));
  const std::lock_guard lock(mutex);
  bool is_past_torch = false;
  std::string place;
  for (int i = 0; i < count; ++i) {
    const void* const address = addresses[static_cast<std::size_t>(i)];
    auto code = known.find(address);
    if (code == known.end()) code = known.emplace(address, code_at(address)).first;
    is_past_torch = is_past_torch || code->second.is_torch;
    if (!is_past_torch || code->second.is_torch || code->second.is_inline) continue;
    if (!code->second.name.empty())
      return place + (place.empty() ? "" : " in ") + code->second.name;
    if (place.empty()) place = code->second.place;
  }
  return place;
}

}  // namespace

/// A transfer, before it is placed.
struct TransferWatch::Event {
  Transfer kind;
  bool waits;
  int64_t bytes;
  c10::Device device;  // it is of
};

namespace {

bool is_in_backward() {
  return std::ranges::any_of(
      frames, [](const Frame& frame) { return std::string_view(frame.name).starts_with(kEngine); });
}

/// Whether the tensor is a plain number of the code, which torch wraps.
bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

/// A tensor of the host that is asked for on the host by name, as .cpu() and .to(kCPU) do: nothing
/// is copied here, but a tensor of a GPU would be. `tensor.to(other.device())` looks the same.
std::optional<TransferWatch::Event> rehearsed_copy(c10::ArrayRef<const c10::IValue> inputs) {
  const auto device =
      std::ranges::find_if(inputs, [](const c10::IValue& input) { return input.isDevice(); });
  if (inputs.end() - device < 3 || !device->toDevice().is_cpu() || !inputs[0].isTensor())
    return std::nullopt;
  const at::Tensor& tensor = inputs[0].toTensor();
  if (!tensor.is_cpu() || tensor.numel() == 0 || is_number(tensor)) return std::nullopt;
  // to.device(self, device, dtype, non_blocking, ...), to.dtype_layout(self, dtype, layout, device,
  // pin_memory, non_blocking, ...)
  const auto& non_blocking = *(device + 2);
  return TransferWatch::Event{Transfer::to_host,
                              !(non_blocking.isBool() && non_blocking.toBool()),
                              tensor.numel() * static_cast<int64_t>(tensor.element_size()),
                              tensor.device()};
}

std::optional<TransferWatch::Event> event_of(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (name == "aten::to") {  // those of a backward pass are autograd's: a GPU's stay on it
    return is_in_backward() ? std::nullopt : rehearsed_copy(function.inputs());
  }
  const bool is_copy = name == "aten::copy_";
  if (!is_copy && !reads_values(name)) return std::nullopt;
  const c10::ArrayRef<const c10::IValue> inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor()) return std::nullopt;
  const at::Tensor& first = inputs[0].toTensor();
  if (!is_copy) {
    if (is_number(first)) return std::nullopt;
    const bool is_one = name == "aten::_local_scalar_dense";
    return TransferWatch::Event{Transfer::host_read,
                                true,
                                is_one ? static_cast<int64_t>(first.element_size()) : 0,
                                first.device()};
  }
  const at::Tensor& from = inputs[1].toTensor();
  if (first.numel() == 0 || is_number(from)) return std::nullopt;
  TransferWatch::Event event{kind_of_copy(first, from),
                             false,
                             first.numel() * static_cast<int64_t>(first.element_size()),
                             first.is_cpu() ? from.device() : first.device()};
  if (event.kind == Transfer::to_host || event.kind == Transfer::to_device) {
    const at::Tensor& of_host = first.is_cpu() ? first : from;
    event.waits = !(inputs[2].toBool() && of_host.is_pinned());
  }
  return event;
}

std::unique_ptr<at::ObserverContext> begin_function(const at::RecordFunction& function) {
  TransferWatch* const watch = the_watch;
  if (watch == nullptr) return nullptr;
  const at::DisableRecordFunctionGuard quiet;
  const uint64_t number = ++frames_so_far;
  frames.push_back({number, function.name(), function.scope() == at::RecordScope::USER_SCOPE});
  if (counted_in == 0 && function.scope() == at::RecordScope::FUNCTION) {
    if (const auto event = event_of(function)) {
      counted_in = number;
      watch->add(*event);
    }
  }
  return std::make_unique<OpenFrame>(number);
}

void end_function(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  if (context == nullptr) return;
  const uint64_t number = static_cast<const OpenFrame*>(context)->number;
  if (counted_in == number) counted_in = 0;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->number != number) continue;
    frames.erase(std::next(frame).base());
    return;
  }
}

}  // namespace

const char* name_of(Transfer kind) {
  constexpr std::array kNames{"to host", "to device", "host read", "cast", "layout", "copy"};
  return kNames.at(static_cast<std::size_t>(kind));
}

TransferWatch::TransferWatch(c10::Device device, std::function<std::string()> layer)
    : device_(device), layer_(std::move(layer)) {
  TransferWatch* none = nullptr;
  if (!the_watch.compare_exchange_strong(none, this))
    throw ConfigError(
        "transfers are watched already: one of trainer.profiler=transfers, "
        "performance.forbid_transfers and a TransferProfiler among the callbacks is enough");
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&begin_function, &end_function)
                                           .needsInputs(true)
                                           .scopes({at::RecordScope::USER_SCOPE,
                                                    at::RecordScope::FUNCTION,
                                                    at::RecordScope::BACKWARD_FUNCTION}));
}

TransferWatch::~TransferWatch() {
  at::removeCallback(handle_);
  the_watch = nullptr;
  frames.clear();
  counted_in = 0;
}

void TransferWatch::begin_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

Transfers TransferWatch::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

void TransferWatch::add(const Event& event) {
  if (event.device.type() != device_.type()) return;
  TransferPlace place{event.kind, event.waits, "", "", layer_(), event.waits ? calling_code() : ""};
  for (const Frame& frame : frames) {
    const std::string_view name = frame.name;
    if (!frame.is_scope) {
      place.operation = name.substr(name.starts_with(kEngine) ? kEngine.size() : 0);
      break;
    }
    if (place.phase.empty() && !name.starts_with("ProfilerStep#")) place.phase = name;
  }
  // A GPU's backward pass has a thread of its own, without the scopes of the one that waits for it.
  if (place.phase.empty()) place.phase = is_in_backward() ? "backward" : "other";
  const std::lock_guard lock(mutex_);
  TransferCount& count = found_[place];
  if (count.calls == 0) count.first_step = step_;
  count.last_step = step_;
  count.calls += 1;
  count.bytes += event.bytes;
}

}  // namespace cytra::perf
