#include "ops/parallel.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/TensorIterator.h>

namespace cytra::ops {

void parallel_for(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> f) {
  if (count <= std::max<int64_t>(grain, 1)) {
    if (count > 0) f(0, count);
    return;
  }
  // A byte's address gives its index; nobody reads it. The iterator's loop is compiled in ATen.
  const at::Tensor bytes = at::empty({count}, at::kByte);
  const char* first = static_cast<const char*>(bytes.const_data_ptr());
  at::TensorIteratorConfig config;
  config.add_const_input(bytes);
  at::TensorIterator iterator = config.build();
  iterator.for_each(
      [&](char** data, const int64_t*, int64_t inner, int64_t outer) {
        const int64_t begin = data[0] - first;
        f(begin, begin + inner * outer);
      },
      std::max<int64_t>(grain, 1));
}

}  // namespace cytra::ops
