// Part of pipelines/detection/kinds.h: TorchScript that gives boxes: torchvision's detectors, and
// others with outputs as theirs.
#include <mutex>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/library.h>

#include "base/error.h"
#include "base/foreign_call.h"
#include "device/error.h"
#include "inference/imported/imported_model.h"
#include "nn/script/load.h"
#include "ops/boxes/boxes.h"
#include "pipelines/detection/kinds.h"
#include "pipelines/detection/tiles.h"

namespace cytra::pipelines {
namespace {

at::Tensor torchvision_nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  return ops::nms(boxes, scores, at::zeros({scores.size(0)}, at::kLong), threshold)
      .to(boxes.device());
}

/// Registers torchvision::nms, which TorchScript of torchvision's detectors calls. Source:
/// torchvision/csrc/ops/boxes/nms.cpp for the operator's schema.
void add_torchvision_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    // A program that links torchvision has it already.
    if (c10::Dispatcher::singleton().findSchema({"torchvision::nms", ""})) return;
    static torch::Library library(
        torch::Library::FRAGMENT, "torchvision", std::nullopt, __FILE__, __LINE__);
    library.def("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", torchvision_nms);
  });
}

class ScriptedDetector final : public Detector {
 public:
  ScriptedDetector(std::string path, c10::Device device, const DetectorOptions& options)
      : path_(std::move(path)), device_(device), options_(options) {
    nn::ExtraFiles files;
    module_ = nn::load_torchscript(path_, files);
    fingerprint_ = inference::fingerprint_of_file(path_);
    takes_list_ =
        module_.get_method("forward").function().getSchema().arguments()[1].type()->kind() ==
        c10::TypeKind::ListType;
    for (const torch::jit::Module& part : module_.modules()) {  // torchvision's name
      if (part.hasattr("detections_per_img") && part.attr("detections_per_img").isInt())
        own_limit_ = part.attr("detections_per_img").toInt();
    }
    for (const at::Tensor& parameter : module_.parameters()) {
      if (parameter.dim() != 4) continue;
      in_channels_ = parameter.size(1);  // of the first convolution
      break;
    }
    if (!device.is_cpu()) module_ = nn::load_torchscript(path_, files, device);
  }

  /// One by one: what padding and batches do to results, the file does not say.
  std::vector<ops::Boxes> detect(const std::vector<at::Tensor>& images) override {
    const c10::InferenceMode inference;
    std::vector<ops::Boxes> found;
    for (const at::Tensor& image : images) {
      expect_detector_image(image, 0);
      const bool is_byte = image.scalar_type() == at::kByte;
      at::Tensor input = image.to(device_, at::kFloat);
      if (is_byte) input = input / 255;
      const std::vector<Tile> tiles = tiles_of({image.size(1), image.size(2)}, options_);
      std::vector<ops::Boxes> parts;
      for (const Tile& tile : tiles) {
        const ops::Boxes all = run(tile.of(input).contiguous());
        parts.push_back(chosen(all, tile.size()));
        if (parts.back().count() >= options_.max_detections || is_cut(all)) ++full_windows_;
      }
      found.push_back(join_tiles(tiles, parts, options_.iou_threshold));
    }
    return found;
  }
  int64_t full_windows() const override { return full_windows_; }
  int64_t in_channels() const override { return in_channels_; }
  std::string fingerprint() const override {
    return fmt::format("{} {}", fingerprint_, text_of(options_));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(
        "{}: {}; expected a list of dicts (boxes (K,4), scores (K), labels (K)) or a tuple of "
        "these three",
        path_,
        what);
  }
  ops::Boxes run(const at::Tensor& given) {
    const ForeignCall call;
    const at::Tensor image = given.clone();  // which the script may change in place
    c10::IValue output;
    try {
      if (takes_list_) {
        output = module_.forward({c10::List<at::Tensor>({image})});
      } else {
        output = module_.forward({image.unsqueeze(0)});
      }
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (device::is_out_of_memory(error)) throw;
      const std::string text = error.what();
      throw DataError("{}: its forward() failed with an image of ({},{},{}): {}",
                      path_,
                      image.size(0),
                      image.size(1),
                      image.size(2),
                      text.substr(0, text.find('\n')));
    }
    return boxes_in(output);
  }
  ops::Boxes boxes_in(const c10::IValue& value) const {
    if (value.isGenericDict()) return boxes_of_dict(value.toGenericDict());
    std::vector<c10::IValue> parts;
    if (value.isTuple()) {
      parts = value.toTupleRef().elements().vec();
    } else if (value.isList()) {
      const auto list = value.toListRef();
      parts.assign(list.begin(), list.end());
    } else {
      refuse("its forward() returns a " + value.tagKind());
    }
    // torchvision's own scripts give (losses, detections).
    if (value.isTuple() && parts.size() == 2 && parts[1].isList()) return boxes_in(parts[1]);
    if (parts.size() == 1) return boxes_in(parts[0]);
    if (parts.size() != 3) refuse(fmt::format("its forward() returns {} things", parts.size()));
    for (const c10::IValue& part : parts) {
      if (!part.isTensor()) refuse("its forward() returns three things that are not tensors");
    }
    return checked({parts[0].toTensor(), parts[1].toTensor(), parts[2].toTensor()});
  }
  ops::Boxes boxes_of_dict(const c10::impl::GenericDict& dict) const {
    const auto tensor = [&](const char* key) {
      const auto entry = dict.find(key);
      if (entry == dict.end() || !entry->value().isTensor())
        refuse(fmt::format("its dict has no '{}'", key));
      return entry->value().toTensor();
    };
    return checked({tensor("boxes"), tensor("scores"), tensor("labels")});
  }
  ops::Boxes checked(ops::Boxes boxes) const {
    const int64_t count = boxes.scores.numel();
    if (boxes.corners.dim() != 2 || boxes.corners.size(1) != 4 || boxes.corners.size(0) != count ||
        boxes.scores.dim() != 1 || boxes.classes.dim() != 1 || boxes.classes.numel() != count) {
      const auto shape = [](const at::Tensor& t) {
        return fmt::format("({})", fmt::join(t.sizes(), ","));
      };
      refuse(fmt::format("boxes {}, scores {}, labels {}",
                         shape(boxes.corners),
                         shape(boxes.scores),
                         shape(boxes.classes)));
    }
    if (!boxes.corners.isfinite().all().item<bool>() || !boxes.scores.isfinite().all().item<bool>())
      refuse("boxes or scores that are not finite");
    return boxes;
  }
  /// Whether the file itself has stopped at its number of detections, before the threshold.
  bool is_cut(const ops::Boxes& all) const {
    return own_limit_ > 0 && all.count() >= own_limit_ &&
           all.scores.min().item<double>() >= options_.conf_threshold;
  }
  ops::Boxes chosen(const ops::Boxes& all, const std::vector<int64_t>& size) const {
    const ops::Boxes within{ops::clip_boxes(all.corners.to(at::kCPU, at::kFloat), size),
                            all.scores.to(at::kCPU, at::kFloat),
                            all.classes.to(at::kCPU, at::kLong)};
    const at::Tensor has_area = ops::box_sides(within.corners).amin(1).gt(0);
    const ops::Boxes good = within.chosen(
        within.scores.ge(options_.conf_threshold).logical_and(has_area).nonzero().select(1, 0));
    const at::Tensor kept =
        ops::nms(good.corners, good.scores, good.classes, options_.iou_threshold);
    return good.chosen(kept.slice(0, 0, options_.max_detections));
  }
  std::string path_, fingerprint_;
  c10::Device device_;
  DetectorOptions options_;
  torch::jit::Module module_;
  bool takes_list_ = false;
  int64_t in_channels_ = 3, full_windows_ = 0;
  int64_t own_limit_ = 0;  // detections that the file gives of an image at most; 0: not known
};

}  // namespace

std::unique_ptr<Detector> load_scripted_detector(const std::string& path,
                                                 c10::Device device,
                                                 const DetectorOptions& options) {
  add_torchvision_operators();
  return std::make_unique<ScriptedDetector>(path, device, options);
}

}  // namespace cytra::pipelines
