#pragma once
// What data modules share that hold images out where none are listed for validation.
#include <iterator>
#include <vector>

#include "data/datamodules/folds.h"

namespace cytra::data {

struct HoldOutOptions : FoldOptions {
  double valid_fraction = 0.2;
  void visit(auto& v) {
    v("valid_fraction", valid_fraction, "share held out where none are for validation", 0, 1);
    FoldOptions::visit(v);
  }
};

inline void append(std::vector<Sample>& all, std::vector<Sample> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

}  // namespace cytra::data
