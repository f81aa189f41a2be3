// RegressionDecoder: the output is the result, a float32 channel for each of the model's.
#include "config/registry.h"
#include "inference/decoder.h"
#include "ops/window_sums.h"

namespace cytra::inference {
namespace {

class RegressionDecoder final : public Decoder {
 public:
  struct Options {
    template <class V>
    void visit(V&) {}
  };
  explicit RegressionDecoder(const Options&) {}
  std::vector<std::string> forms() const override { return {"value"}; }
  bool is_labels(const std::string&) const override { return false; }
  ops::Finish finish(const std::string&, double) const override { return {}; }
};
CYTRA_REGISTER(Decoder, RegressionDecoder, "RegressionDecoder");

}  // namespace
}  // namespace cytra::inference
