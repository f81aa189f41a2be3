#pragma once
#include "perf/precision.h"

namespace cytra::data {
struct Batch;
}

namespace cytra::training {

using perf::Autocast;
using perf::Precision;
using perf::precision_of;

/// Images in the type that the weights have.
void cast(data::Batch& batch, c10::ScalarType type);

}  // namespace cytra::training
