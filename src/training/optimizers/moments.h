#pragma once
// What the relatives of Adam have in common.
#include <vector>

#include "base/error.h"
#include "training/optimizer.h"

namespace cytra::training {

struct MomentOptions : OptimizerOptions {
  double eps = 1e-8;
  std::vector<double> betas{0.9, 0.999};
  bool maximize = false;
  void visit(auto& v) {
    OptimizerOptions::visit(v);
    v("betas", betas, "decay of the means of the gradient and of its size, two numbers", 0, 1);
    v("eps", eps, "added to the denominator", 0, 1);
    v("maximize", maximize, "go up the gradient");
  }
  void check() const {
    OptimizerOptions::check(/*has_fused=*/false);
    if (betas.size() != 2) throw ConfigError("betas: expected two numbers");
  }
};

/// `of(n)` for the number of updates n of each parameter.
template <class Lists, class Of>
auto for_each_count(const Lists& lists, const Of& of) {
  std::vector<decltype(of(0.0))> values;
  for (const at::Tensor& count : lists.steps)
    values.push_back(of(static_cast<double>(*count.template const_data_ptr<float>())));
  return values;
}

}  // namespace cytra::training
