#pragma once
#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace cytra::ops {

/// Calls f(begin, end) on parts of [0, count), each of at least about `grain` indices, in the
/// threads that ATen's own operations use: at::set_num_threads holds here too, and no second pool
/// competes with the convolutions'. Like at::parallel_for, which this build, without OpenMP, would
/// compile into a serial loop.
void parallel_for(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> f);

}  // namespace cytra::ops
