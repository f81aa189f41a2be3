#pragma once
#include "inference/models/trained_model.h"

namespace cytra::inference {

/// `forward` as it may be called with windows that are used again, and for outputs that are kept:
/// the network, which others may have written, gets a copy that it may change in place, and an
/// output that it holds itself, and may write again, is copied. A trace is of the network alone.
Forward isolated(Forward forward);

}  // namespace cytra::inference
