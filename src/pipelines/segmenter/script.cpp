// Part of pipelines/segmenter/segmenters.h: others' segmenters as TorchScript.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>

#include "base/error.h"
#include "base/foreign_call.h"
#include "inference/imported/imported_model.h"
#include "nn/script/load.h"
#include "pipelines/segmenter/segmenters.h"

namespace cytra::pipelines {
namespace {

namespace jit = torch::jit;

[[noreturn]] void refuse_script(const std::string& path, const std::string& what) {
  throw DataError("{}: {}", path, what);
}

class ScriptSegmenter final : public PromptedSegmenter {
 public:
  ScriptSegmenter(const std::string& path,
                  jit::Module module,
                  int64_t side,
                  const nn::PixelScale& pixels,
                  c10::Device device,
                  std::string fingerprint)
      : PromptedSegmenter(side, pixels),
        path_(path),
        module_(std::move(module)),
        device_(device),
        fingerprint_(std::move(fingerprint)) {}
  at::Tensor encode(const at::Tensor& images) override {
    const at::Tensor embeddings = run("encode", {images.to(device_)});
    if (embeddings.dim() != 4 || embeddings.size(0) != images.size(0))
      refuse_script(path_,
                    fmt::format("its encode() made ({}) of {} images, expected ({},C,s,s)",
                                fmt::join(embeddings.sizes(), ","),
                                images.size(0),
                                images.size(0)));
    return embeddings;
  }
  at::Tensor masks(const at::Tensor& embeddings, const at::Tensor& boxes) override {
    at::Tensor logits = run("masks", {embeddings.to(device_), boxes.to(device_, at::kFloat)});
    if (logits.dim() == 4 && logits.size(1) == 1) logits = logits.squeeze(1);
    if (logits.dim() != 3 || logits.size(0) != boxes.size(0))
      refuse_script(path_,
                    fmt::format("its masks() made ({}) of {} boxes, expected ({},h,w)",
                                fmt::join(logits.sizes(), ","),
                                boxes.size(0),
                                boxes.size(0)));
    return logits.to(at::kFloat);
  }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  at::Tensor run(const char* method, std::vector<c10::IValue> inputs) {
    const at::NoGradGuard no_grad;
    const ForeignCall call;
    const c10::IValue value = module_.get_method(method)(std::move(inputs));
    if (!value.isTensor())
      refuse_script(path_,
                    fmt::format("its {}() gives a {}, expected a tensor", method, value.tagKind()));
    return value.toTensor();
  }
  std::string path_;
  jit::Module module_;
  c10::Device device_;
  std::string fingerprint_;
};

/// The attribute as three numbers; segment_anything's where it is missing.
std::vector<double> three_numbers(const std::string& path,
                                  const jit::Module& module,
                                  const char* name,
                                  const std::vector<double>& usual) {
  if (!module.hasattr(name)) return usual;
  const c10::IValue value = module.attr(name);
  if (!value.isDoubleList() || value.toDoubleVector().size() != 3)
    refuse_script(path, fmt::format("its {} is no list of 3 numbers", name));
  return value.toDoubleVector();
}

}  // namespace

std::unique_ptr<PromptedSegmenter> open_script(const std::string& path, c10::Device device) {
  nn::ExtraFiles files;
  const jit::Module module = nn::load_any_torchscript(path, files, device);
  for (const char* method : {"encode", "masks"}) {
    if (!module.find_method(method))
      refuse_script(path,
                    fmt::format("TorchScript without {}(); expected the methods encode(images) and "
                                "masks(embeddings, boxes), and an int image_size",
                                method));
  }
  if (!module.hasattr("image_size") || !module.attr("image_size").isInt() ||
      module.attr("image_size").toInt() < 1)
    refuse_script(path, "TorchScript without an int attribute image_size: the square's pixels");
  const nn::PixelScale pixels{three_numbers(path, module, "pixel_mean", nn::kSamPixels.mean),
                              three_numbers(path, module, "pixel_std", nn::kSamPixels.std)};
  const int64_t side = module.attr("image_size").toInt();
  return std::make_unique<ScriptSegmenter>(
      path, module, side, pixels, device, inference::fingerprint_of_file(path));
}

}  // namespace cytra::pipelines
