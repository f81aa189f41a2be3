#pragma once
// Where torch's operations copy memory, and where the host waits for the device: what keeps a GPU
// from running ahead.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include <c10/core/Device.h>

namespace cytra::perf {

enum class Transfer {
  to_host,    // from the device
  to_device,  // from the host
  host_read,  // the host needs values: item(), nonzero(), a boolean mask as index, ...
  cast,       // to another type, on the device
  layout,     // into another order of dimensions (memory format), on the device
  copy,       // any other, on the device
};
/// "to host", "host read", ...
const char* name_of(Transfer kind);

/// The place where a transfer happens, as far as it is known; "": not known.
struct TransferPlace {
  Transfer kind = Transfer::copy;
  bool waits = false;     // the host waits for the device
  std::string phase;      // the outermost scope (RECORD_USER_SCOPE), or "other"
  std::string operation;  // the outermost of torch's: "aten::item"; in backward "MulBackward0"
  std::string layer;      // as the caller knows it
  std::string code;       // of what waits: the function that called torch, or "library+0xoffset"

  bool operator<(const TransferPlace& other) const {
    return std::tie(kind, waits, phase, operation, layer, code) <
           std::tie(other.kind, other.waits, other.phase, other.operation, other.layer, other.code);
  }
};
struct TransferCount {
  int64_t calls = 0, bytes = 0, first_step = 0, last_step = 0;
};
using Transfers = std::map<TransferPlace, TransferCount>;

/// Counts what this thread and its backward passes transfer, while it lives; one at a time in a
/// process. On a CPU nothing goes from device to host: host reads, and tensors that are asked for
/// on the host by name, are those that would make a GPU wait. Not seen: copies inside an operation
/// (cat, pad), those of libraries.
class TransferWatch {
 public:
  /// Watches tensors on `device`. `layer` returns the layer that is running. Throws: ConfigError
  /// when there is one already.
  TransferWatch(c10::Device device, std::function<std::string()> layer);
  ~TransferWatch();

  /// What follows is of the step with this number.
  void begin_step(int64_t step);
  Transfers found() const;

  struct Event;
  void add(const Event& event);  // by torch's callbacks

 private:
  c10::Device device_;
  std::function<std::string()> layer_;
  uint64_t handle_;
  mutable std::mutex mutex_;  // backward passes have threads of their own
  int64_t step_ = 0;
  Transfers found_;
};

}  // namespace cytra::perf
