// Source: cellpose 4.2: models.py (CellposeModel.eval), core.py (run_net), vit.py.
#include "inference/imported/cellpose.h"

#include "base/error.h"
#include "config/options.h"
#include "io/weights/torch_file.h"
#include "nn/weight_shapes.h"

namespace cytra::inference {
namespace {

using config::Node;

constexpr const char* kCellpose = R"(
task:
  _target_: InstanceTask
  x_key: raw
  y_key: seg
  method: flows
  diameter: 30
  decoder: {_target_: InstanceDecoder, method: flows}
  inference_args: {sw_batch_size: 4, overlap: 0.1, mode: cellpose, spacing: cellpose}
data:
  transforms:
    valid:
      - {_target_: LoadImaged, keys: [raw, seg], spatial_dims: 2}
      - {_target_: CellposePreprocessingd, keys: [raw]}
)";

std::optional<Node> config_of(const std::string& path, const io::TensorViews& tensors) {
  const std::string first = "encoder.patch_embed.proj.weight";
  for (const auto& [name, view] : tensors) {
    if (name.find("downsample.down.res_down_0.") != std::string::npos)
      throw DataError(path +
                      ": a network of Cellpose 3 or older, which is not known here; expected "
                      "weights of Cellpose-SAM (cpsam of cellpose 4)");
    if (!name.ends_with(first)) continue;
    const std::string front = name.substr(0, name.size() - first.size());
    const nn::WeightShapes shapes(path, tensors, front, "Cellpose-SAM");
    if (!shapes.has("W2")) continue;
    if (shapes.has("encoder.cls_token"))
      throw DataError(path +
                      ": Cellpose's cpdino, whose encoder (DINOv3) is not known here; expected "
                      "weights of Cellpose-SAM (cpsam, cpsam_v2)");
    Node model = nn::sam_encoder_options(shapes, "encoder.", /*are_resampled=*/true);
    model.set("_target_", Node::make_string("CPSAM"));
    model.set("out_channels", Node::make_integer(shapes.size("W2", 1)));
    Node config = config::parse_yaml(kCellpose, "cellpose");
    const Node side = model.at("img_size");
    config.find("task.inference_args")->set("roi_size", Node::make_list({side, side}));
    config.find("task")->set("model", std::move(model));
    config.set("patch_shape", Node::make_list());  // so that predict's windows stay Cellpose's
    return config;
  }
  return {};
}

}  // namespace

std::optional<Node> cellpose_config(const std::string& path) {
  if (io::is_torch_file(path)) return config_of(path, io::TorchFile(path).tensors());
  const io::SafetensorsFile file(path);
  if (file.metadata().count("config") > 0) return {};
  return config_of(path, file.tensors());
}

}  // namespace cytra::inference
