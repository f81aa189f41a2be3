// BioimageioProcessing: the postprocessing of bioimage.io's model description 0.5.
#include "data/transforms/intensity/bioimageio.h"

#include "inference/postprocess/step.h"

namespace cytra::inference {
namespace {

class BioimageioProcessing final : public Postprocess {
 public:
  struct Options {
    config::Node operations;
    void visit(auto& v) {
      v("operations", operations, "postprocessing of bioimage.io's model description 0.5");
    }
  };
  explicit BioimageioProcessing(const Options& options) : operations_(options.operations) {}
  void apply(Result& result) const override {
    expect_scores(result);
    const bool is_known = operations_.take_input() && result.input;
    result.values = operations_(result.values, is_known ? result.input() : at::Tensor());
  }

 private:
  data::BioimageioOperations operations_;
};
CYTRA_REGISTER(Postprocess, BioimageioProcessing, "BioimageioProcessing");

}  // namespace
}  // namespace cytra::inference
