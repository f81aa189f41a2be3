// Half precision by oneDNN, where it is right. Its convolutions for some processors (AMX, torch
// 2.11) read memory that nothing was written to, in shapes that no rule is known for. So each shape
// that is worth it is tried once, on each processor, before it is used.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops::cpu {

/// One result of a convolution's tensors, in their type. The first `of_images` of them have a row
/// for each image; so has the result, unless it sums over them.
struct ConvResult {
  std::function<at::Tensor(const std::vector<at::Tensor>& tensors)> compute;
  std::size_t of_images = 1;
  bool is_sum = false;
  std::size_t unread = SIZE_MAX;  // the tensor whose sizes alone are used
};

/// Whether `result` is right in half precision for tensors of such a type, of such sizes and
/// strides (dense ones): on values of ours it must give what float32 gives, to 2 % of the largest,
/// while what it allocates, what was freed and what lies beside its tensors is NaN. float32 is
/// computed image by image: the trial takes little more memory than what is tried. The answer is
/// kept for `key`, which must name the operation and its options; a thousand answers are. It is
/// one for each number of threads, for which oneDNN plans. Thread: any.
bool is_right_in_half(const std::vector<at::Tensor>& tensors,
                      std::vector<int64_t> key,
                      const ConvResult& result);

}  // namespace cytra::ops::cpu
