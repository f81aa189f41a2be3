#pragma once
// Which precisions a device has instructions for.
#include <optional>
#include <string>

#include <c10/core/Device.h>

namespace cytra::device {

/// Why products in this precision ("16-mixed") are slow on the device, which emulates them; ""
/// where they are fast.
std::string slow_precision(const std::string& precision, c10::Device device);
/// Warns of a slow precision, with what to type.
void warn_of_slow_precision(const std::string& precision, c10::Device device);

/// The precision in which a GPU computes what was asked for: 16-mixed for bf16-mixed where it has
/// no bfloat16 (before Ampere), and says so; else the same.
std::string precision_on(const std::string& asked, c10::Device device);

/// Whether convolutions in this precision run on a GPU's tensor cores, which need images with
/// channels last: half precision, and float32 where the GPU has TF32 and torch may use it (set by
/// apply()).
bool uses_tensor_cores(const std::string& precision, c10::Device device);

/// The precision in which a trained model is run: the one that was `asked` for, else that of its
/// training where the device has it, else float32. Logs it, unless it is float32 in both.
std::string precision_to_run(const std::optional<std::string>& asked,
                             const std::string& trained,
                             c10::Device device);

}  // namespace cytra::device
