#pragma once
#include "device/precision.h"

namespace cytra::data {
struct Batch;
}

namespace cytra::training {

using device::Autocast;
using device::Precision;
using device::precision_of;

/// Images in the type that the weights have.
void cast(data::Batch& batch, c10::ScalarType type);

}  // namespace cytra::training
