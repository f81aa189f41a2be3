// Activations: makes probabilities from logits. Source: monai.transforms.Activations.
#include "inference/postprocess/step.h"

namespace cytra::inference {
namespace {

struct Activations {
  bool sigmoid = false, softmax = false;
  void visit(auto& v) {
    v("sigmoid", sigmoid, "of each value");
    v("softmax", softmax, "over the channels");
  }
  void check() const {
    if (sigmoid == softmax) throw ConfigError("expected sigmoid=true or softmax=true");
  }
  void apply(Result& result) const {
    expect_scores(result);
    result.values = sigmoid ? result.values.sigmoid() : result.values.softmax(0);
  }
};
CYTRA_REGISTER(Postprocess, Step<Activations>, "Activations");

}  // namespace
}  // namespace cytra::inference
