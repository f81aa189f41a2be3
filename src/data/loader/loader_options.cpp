#include "data/loader/loader_options.h"

#include <algorithm>

#include "base/control_groups.h"

namespace cytra::data {

int64_t LoaderOptions::workers(int64_t processes) const {
  // Half of the processors are used, as the training step needs some, too. Two workers also where
  // there is one processor, as reading waits.
  constexpr int64_t kFewest = 2, kMost = 8;
  if (num_workers != kAutoWorkers) return num_workers;
  return std::clamp(available_processors() / processes / 2, kFewest, kMost);
}

}  // namespace cytra::data
