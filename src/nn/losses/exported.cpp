// ExportedLoss: a loss of one's own, written in Python and saved by torch.export.save
// (docs/networks.md).
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/exported/function.h"
#include "nn/loss.h"

namespace cytra::nn {
namespace {

class ExportedLoss final : public Loss {
 public:
  struct Options : LossOptions {
    std::string file;
    void visit(auto& v) {
      v("file",
        file,
        "what torch.export.save wrote of a module that makes a number of logits, target and, where "
        "it takes three tensors, a mask of 0 and 1",
        config::required);
      LossOptions::visit(v);
    }
  };
  explicit ExportedLoss(const Options& options)
      : Loss(options), path_(options.file), function_(path_, {"logits", "target", "mask"}, 2) {}

 protected:
  at::Tensor compute(const LossInput& in) const override {
    const auto& [logits, target, mask] = in;
    if (mask.defined() && function_.count() == 2) {
      throw DataError(path_ +
                      ": voxels are left out (a mask, ignore_index), but forward() takes "
                      "logits and target alone; give it a third tensor, the mask");
    }
    std::vector<at::Tensor> inputs{logits, target};
    if (function_.count() == 3)
      inputs.push_back(mask.defined() ? mask : at::ones_like(logits.narrow(1, 0, 1)));
    const at::Tensor loss = function_(inputs);
    if (loss.numel() == 1) return loss.reshape({});
    throw DataError(
        "{}: forward() gives ({}), expected one number", path_, fmt::join(loss.sizes(), ","));
  }

 private:
  std::string path_;
  ExportedFunction function_;
};
CYTRA_REGISTER(Loss, ExportedLoss, "ExportedLoss");

}  // namespace
}  // namespace cytra::nn
