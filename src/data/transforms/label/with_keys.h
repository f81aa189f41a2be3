#pragma once
#include "data/sample/per_key.h"

namespace cytra::data {

/// An operation of ops/labels/ with the keys that it is applied to.
template <class Operation>
struct WithKeys : KeyOptions, Operation {
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    Operation::visit(v);
  }
};

}  // namespace cytra::data
