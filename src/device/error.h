#pragma once
#include <exception>
#include <optional>
#include <string>

namespace cytra::device {

/// Whether torch ran out of memory, of the host or a device.
bool is_out_of_memory(const std::exception& error);

/// Translates torch's message about a failure on a device for the user. Throws: DataError for an
/// index beyond its range (a label), ConfigError for a GPU, driver or setting that does not fit,
/// IoError for hardware that failed; returns when it is none of these.
void throw_device_error(const std::string& what);

/// Rethrows the exception that is being handled, torch's own as one of ours: MemoryError where
/// memory ran out, DataError for a target's wrong classes, the errors of throw_device_error(),
/// else a std::runtime_error of one line.
[[noreturn]] void rethrow_as_ours();

/// Returns what `work` returns. Throws: what rethrow_as_ours() throws.
auto guarded(const auto& work) {
  try {
    return work();
  } catch (...) {
    rethrow_as_ours();
  }
}

/// What `work` gives; none where memory runs out, of the host or a device, meanwhile.
template <class Work>
auto if_it_fits(const Work& work) -> std::optional<decltype(work())> {
  try {
    return work();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    return std::nullopt;
  }
}

}  // namespace cytra::device
