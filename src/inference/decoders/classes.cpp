// ClassDecoder: a mask, classes that exclude each other, or masks that may overlap.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "inference/decoders/decoder.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

class ClassDecoder final : public Decoder {
 public:
  struct Options {
    int64_t num_classes = 1;
    bool multilabel = false, labels_only = false;
    std::string activation;
    void visit(auto& v) {
      v("num_classes", num_classes, "1: a mask; K: classes 0 (background) to K - 1", 1, 65536);
      v("multilabel", multilabel, "the classes are masks that may overlap, a channel each");
      v("labels_only", labels_only, "they are of several models, and have no common probability");
      v("activation",
        activation,
        "what the model ends with, so that it gives probabilities; \"\": it gives logits",
        {"", "sigmoid", "softmax"});
    }
  };
  explicit ClassDecoder(const Options& options) : options_(options) {}

  /// Logits, whose means over windows and models are sharper than those of probabilities.
  at::Tensor in_units(const at::Tensor& output) const override {
    if (options_.activation.empty()) return output;
    constexpr double kLeast = 1e-30, kLeastOfOne = 1e-7;  // float32's
    const at::Tensor values = output.to(at::kFloat);
    return options_.activation == "softmax" ? values.clamp_min(kLeast).log()
                                            : values.logit(kLeastOfOne);
  }
  std::vector<std::string> forms() const override {
    if (options_.labels_only) return {"mask"};
    return {"mask", "probability", "logits", "entropy", "variance"};
  }
  bool is_labels(const std::string& form) const override { return form == "mask"; }
  metrics::Metric::Input compares_as() const override { return metrics::Metric::Input::masks; }
  ops::Finish finish(const std::string& form, double threshold) const override {
    using Kind = ops::Finish::Kind;
    const bool are_exclusive = options_.num_classes > 1 && !options_.multilabel;
    ops::Finish finish;
    finish.threshold = threshold;
    if (form == "mask") {
      finish.kind = are_exclusive ? Kind::argmax : Kind::threshold;
      finish.type = are_exclusive && options_.num_classes > 256 ? at::kUInt16 : at::kByte;
    } else if (form == "probability") {
      finish.kind = are_exclusive ? Kind::softmax : Kind::sigmoid;
    } else if (form == "entropy") {
      finish.kind = are_exclusive ? Kind::entropy : Kind::binary_entropy;
    }
    return finish;
  }
  std::vector<double> background(int64_t channels) const override {
    std::vector<double> logits(static_cast<std::size_t>(channels), -kSureLogit);
    if (options_.num_classes > 1 && !options_.multilabel) logits[0] = kSureLogit;
    return logits;
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Decoder, ClassDecoder, "ClassDecoder");

}  // namespace
}  // namespace cytra::inference
