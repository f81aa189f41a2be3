// Activations: makes probabilities from logits. Source: monai.transforms.Activations.
#include "inference/postprocess/step.h"

namespace cytra::inference {
namespace {

class Activations final : public Postprocess {
 public:
  struct Options {
    bool sigmoid = false, softmax = false;
    template <class V>
    void visit(V& v) {
      v("sigmoid", sigmoid, "of each value");
      v("softmax", softmax, "over the channels");
    }
    void check() const {
      if (sigmoid == softmax) throw ConfigError("expected sigmoid=true or softmax=true");
    }
  };
  explicit Activations(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    expect_scores(result);
    result.values = options_.sigmoid ? result.values.sigmoid() : result.values.softmax(0);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Postprocess, Activations, "Activations");

}  // namespace
}  // namespace cytra::inference
