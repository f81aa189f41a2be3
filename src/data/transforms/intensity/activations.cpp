// Activationsd: makes probabilities from logits. Source: monai.transforms.Activationsd.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct Activationsd : KeyOptions {
  bool sigmoid = false, softmax = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("sigmoid", sigmoid, "of each value");
    v("softmax", softmax, "over the channels");
  }
  void check() const {
    if (sigmoid == softmax) throw ConfigError("expected sigmoid=true or softmax=true");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return sigmoid ? image.sigmoid() : image.softmax(0);
  }
};
CYTRA_REGISTER(Transform, PerKey<Activationsd>, "Activationsd");

}  // namespace
}  // namespace cytra::data
