// InstanceDecoder: flows or stars, and the labels that are made from them
// (ops/labels/flow_labels.h, ops/labels/star_labels.h).
#include "config/registry.h"
#include "inference/decoders/decoder.h"
#include "inference/postprocess/step.h"
#include "ops/labels/flow_labels.h"
#include "ops/labels/star_labels.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

using Flows = ToLabels<ops::FlowsToLabels>;
using Stars = ToLabels<ops::StarsToLabels>;

class InstanceDecoder final : public Decoder {
 public:
  struct Options {
    std::string method = "flows";
    ops::FlowsToLabels flows;
    ops::StarsToLabels stars;
    void visit(auto& v) {
      v("method", method, "what the channels are", {"flows", "stars"});
      v("flows", flows, "how flows become labels");
      v("stars", stars, "how distances along rays become labels");
    }
  };
  explicit InstanceDecoder(const Options& options) {
    if (options.method == "flows") {
      step_ = std::make_shared<Step<Flows>>(Flows{options.flows});
      step_->name = "FlowsToLabels";
    } else {
      are_stars_ = true;
      grid_ = options.stars.grid;
      step_ = std::make_shared<Step<Stars>>(Stars{options.stars});
      step_->name = "StarsToLabels";
    }
  }
  std::vector<std::string> forms() const override { return {"labels", "raw"}; }
  bool is_labels(const std::string& form) const override { return form == "labels"; }
  ops::Finish finish(const std::string&, double) const override { return {}; }
  std::vector<int64_t> grid() const override { return grid_; }
  bool turns_with_image() const override { return false; }
  std::vector<std::shared_ptr<Postprocess>> steps(const std::string& form) const override {
    if (form != "labels") return {};
    return {step_};
  }
  std::vector<double> background(int64_t channels) const override {
    std::vector<double> values(static_cast<std::size_t>(channels));  // no flow, no distance
    (are_stars_ ? values.front() : values.back()) = -kSureLogit;
    return values;
  }

 private:
  std::shared_ptr<Postprocess> step_;
  std::vector<int64_t> grid_;
  bool are_stars_ = false;
};
CYTRA_REGISTER(Decoder, InstanceDecoder, "InstanceDecoder");

}  // namespace
}  // namespace cytra::inference
