#pragma once
// What `optimize` takes, the section `optimize` of the configuration.

namespace cytra::app {

struct OptimizeOptions {
  double seconds = 60;
  template <class V>
  void visit(V& v) {
    v("seconds",
      seconds,
      "of measuring, set-up and warm-up aside; of --auto-optimize forty times a run's",
      0.1,
      1e5);
  }
};

}  // namespace cytra::app
