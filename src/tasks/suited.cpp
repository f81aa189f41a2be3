#include "tasks/suited.h"

#include <map>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "config/schema.h"
#include "nn/loss.h"
#include "nn/model.h"

namespace cytra::tasks {
namespace {

using config::Node;

const char* advice_for(Learned learned) {
  switch (learned) {
    case Learned::masks:
      return "DiceCELoss (loss=dice_ce) or another of masks (docs/losses.md)";
    case Learned::values:
      return "MSELoss (loss=mse), L1Loss (l1), HuberLoss (huber), SmoothL1Loss (smooth_l1) or "
             "SSIMLoss (ssim)";
    case Learned::flows:
      return "task.loss=null, which is CellposeLoss";
    case Learned::stars:
      return "task.loss=null, which is StarDistLoss";
  }
  return "";
}

const char* text_of(Learned learned) {
  switch (learned) {
    case Learned::masks:
      return "masks or classes";
    case Learned::values:
      return "values";
    case Learned::flows:
      return "flows (task.method=flows)";
    case Learned::stars:
      return "stars (task.method=stars)";
  }
  return "";
}

/// What the losses of Cytra compare; losses that contain others are not in the table.
const std::map<std::string, Learned>& losses() {
  static const std::map<std::string, Learned> known{{"BCEWithLogitsLoss", Learned::masks},
                                                    {"BoundaryLoss", Learned::masks},
                                                    {"CellposeLoss", Learned::flows},
                                                    {"CrossEntropyLoss", Learned::masks},
                                                    {"DiceCELoss", Learned::masks},
                                                    {"DiceFocalLoss", Learned::masks},
                                                    {"DiceLoss", Learned::masks},
                                                    {"FocalLoss", Learned::masks},
                                                    {"FocalTverskyLoss", Learned::masks},
                                                    {"GeneralizedDiceLoss", Learned::masks},
                                                    {"HausdorffDTLoss", Learned::masks},
                                                    {"HuberLoss", Learned::values},
                                                    {"L1Loss", Learned::values},
                                                    {"LogHausdorffDTLoss", Learned::masks},
                                                    {"MaskedDiceLoss", Learned::masks},
                                                    {"MSELoss", Learned::values},
                                                    {"SmoothL1Loss", Learned::values},
                                                    {"SoftclDiceLoss", Learned::masks},
                                                    {"SoftDiceclDiceLoss", Learned::masks},
                                                    {"SSIMLoss", Learned::values},
                                                    {"StarDistLoss", Learned::stars},
                                                    {"TopKLoss", Learned::masks},
                                                    {"TverskyLoss", Learned::masks}};
  return known;
}

/// The registered name; "" where there is none, which is reported elsewhere.
std::string type_of(const Node& component, const char* kind) {
  try {
    return component.is_map() ? config::components_of(kind).name_of(component) : "";
  } catch (const ConfigError&) {
    return "";
  }
}

}  // namespace

void expect_image_model(const Node& model) {
  static const std::map<std::string, std::string> others{
      {"MAE",
       "hidden patches; expected task=mae (experiment=im2im/mae), or for masks model=seg_vit"},
      {"HieraMAE",
       "hidden patches; expected task=mae (experiment=im2im/mae), or for masks model=seg_vit"},
      {"ImageClassifier",
       "classes of images; expected task=classification (experiment=im2im/classification)"},
      {"ViT", "tokens; expected model=unetr, swin_unetr or seg_vit, which make an image of them"},
      {"FCOS", "boxes; expected task=detection (experiment=detection/cells)"},
      {"Sam", "masks of boxes; expected task=promptable (experiment=promptable/cells)"}};
  const std::string type = type_of(model, nn::Model::kKind);
  if (const auto found = others.find(type); found != others.end()) {
    throw ConfigError(
        fmt::format("{}: {} gives {}", model.at("_target_").where(), type, found->second));
  }
  if (const Node* backbone = model.find("backbone")) expect_image_model(*backbone);
}

void expect_loss_of(const Node& loss, Learned learned) {
  const std::string type = type_of(loss, nn::Loss::kKind);
  if (type.empty()) return;
  const auto found = losses().find(type);
  if (found != losses().end() && found->second != learned) {
    throw ConfigError(fmt::format("{}: {} compares {}, but this task learns {}; expected {}",
                                  loss.at("_target_").where(),
                                  type,
                                  text_of(found->second),
                                  text_of(learned),
                                  advice_for(learned)));
  }
  for (const auto& [key, value] : loss.map) {  // losses in it, one or several by name
    expect_loss_of(value, learned);
    if (!value.has("_target_") && value.is_map()) {
      for (const auto& [name, inner] : value.map) expect_loss_of(inner, learned);
    }
  }
}

}  // namespace cytra::tasks
