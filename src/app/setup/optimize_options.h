#pragma once
// What `optimize` takes, the section `optimize` of the configuration.

namespace cytra::app {

struct OptimizeOptions {
  double seconds = 60;
  void visit(auto& v) {
    v("seconds",
      seconds,
      "seconds of measuring, without set-up and warm-up; a run of --auto-optimize takes a fortieth",
      0.1,
      1e5);
  }
};

}  // namespace cytra::app
