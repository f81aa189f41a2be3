// ToTensord, EnsureTyped, CastToTyped, ToDeviced, ToMetaTensord, FromMetaTensord, Identityd,
// EnsureChannelFirstd: accepted for MONAI's pipelines, where they make the float32 tensors that
// samples already have here; they check that the keys exist. Source: monai.transforms, the same
// names.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

/// A transform that changes nothing.
struct Identity : KeyOptions {
  static constexpr bool kIsPointwise = true;
  at::Tensor operator()(const at::Tensor& image) const { return image; }
};

struct Typed : Identity {
  std::vector<std::string> dtype;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("dtype", dtype, "float32 or null, one or one for each key");
  }
  void check() const {
    for (const std::string& name : dtype) {
      const std::string last = name.substr(name.rfind('.') + 1);  // of torch.float32
      if (last != "float32" && last != "float" && last != "null") {
        throw ConfigError("dtype: '" + name +
                          "', expected float32: samples are, and labels up to 2^24 stay exact");
      }
    }
  }
};
CYTRA_REGISTER(Transform, PerKey<Typed>, "CastToTyped");

struct ToTensord : Typed {
  std::string device = "cpu";
  void visit(auto& v) {
    Typed::visit(v);
    v("device", device, "transforms run on the CPU", {"cpu"});
    v("wrap_sequence", config::Unused{}, "samples have no sequences");
    v("track_meta", config::Unused{}, "each image keeps its own geometry");
  }
};
CYTRA_REGISTER(Transform, PerKey<ToTensord>, "ToTensord");

struct EnsureTyped : ToTensord {
  std::string data_type = "tensor";
  void visit(auto& v) {
    ToTensord::visit(v);
    v("data_type", data_type, "samples are tensors", {"tensor"});
  }
};
CYTRA_REGISTER(Transform, PerKey<EnsureTyped>, "EnsureTyped");

struct ToDeviced : Identity {
  std::string device = "cpu";
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("device", device, "the trainer moves batches to the model's device", {"cpu"});
    v("non_blocking", config::Unused{}, "nothing is moved");
  }
};
CYTRA_REGISTER(Transform, PerKey<ToDeviced>, "ToDeviced");

struct MetaTensord : Identity {
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("data_type", config::Unused{}, "each image keeps its own geometry");
  }
};
CYTRA_REGISTER(Transform, PerKey<MetaTensord>, "ToMetaTensord", "FromMetaTensord");

CYTRA_REGISTER(Transform, PerKey<Identity>, "Identityd");

struct EnsureChannelFirstd : KeyOptions {
  static constexpr bool kIsPointwise = true;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("lazy", config::Unused{{"false", "null"}}, "each transform resamples by itself");
    v("channel_dim", config::Unused{{"0", "no_channel"}}, "images have their channels first");
    v("strict_check", config::Unused{}, "an image without a channel dimension is an error");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    if (image.dim() == 3 || image.dim() == 4) return image;
    throw DataError(std::to_string(image.dim()) + " dimensions, expected (C,Y,X) or (C,Z,Y,X)");
  }
};
CYTRA_REGISTER(Transform, PerKey<EnsureChannelFirstd>, "EnsureChannelFirstd");

}  // namespace
}  // namespace cytra::data
