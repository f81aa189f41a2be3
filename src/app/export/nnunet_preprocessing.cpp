#include "app/export/nnunet_preprocessing.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/export/bioimageio_operations.h"
#include "base/error.h"

namespace cytra::app {
namespace {

using config::Node;

/// How nnU-Net normalizes one channel.
class ChannelScheme {
 public:
  void scale(double gain, double offset) {
    if (has_statistics()) refuse_for_nnunet("a change of the values after their normalization");
    if (gain <= 0) refuse_for_nnunet("values that are multiplied by a number that is not positive");
    gain_ *= gain;
    offset_ = offset_ * gain + offset;
  }
  void clip(double low, double high) {
    if (has_statistics()) refuse_for_nnunet("a clip after the normalization");
    low_ = std::max(low_, (low - offset_) / gain_);
    high_ = std::min(high_, (high - offset_) / gain_);
  }
  void take(const char* statistics) {
    if (has_statistics() || is_clipped())
      refuse_for_nnunet("more than one of a clip and a normalization by the image itself");
    name_ = statistics;
  }
  std::string name() const {
    if (has_statistics()) return name_;
    return is_clipped() || gain_ != 1 || offset_ != 0 ? "CTNormalization" : "NoNormalization";
  }
  /// The numbers of CTNormalization: clip, then (value - mean) / std.
  Node intensities() const {
    const auto real = [](double value) { return Node::make_real(value); };
    return map_of({{"mean", real(-offset_ / gain_)},
                   {"std", real(1 / gain_)},
                   {"median", real(-offset_ / gain_)},
                   {"min", real(low_)},
                   {"max", real(high_)},
                   {"percentile_00_5", real(low_)},
                   {"percentile_99_5", real(high_)}});
  }

 private:
  static constexpr double kMost = 1e30;  // no clip, in the range of float32
  bool has_statistics() const { return !name_.empty(); }
  bool is_clipped() const { return low_ > -kMost || high_ < kMost; }
  std::string name_;
  double gain_ = 1, offset_ = 0, low_ = -kMost, high_ = kMost;
};

std::vector<ChannelScheme> schemes_of(const Node& operations, int64_t channels) {
  std::vector<ChannelScheme> schemes(static_cast<std::size_t>(channels));
  for (const Node& operation : operations.list) {
    const auto id = operation.get<std::string>("id");
    const Node* found = operation.find_direct("kwargs");
    const Node kwargs = found == nullptr ? Node::make_map() : *found;
    const auto of_channel = [&](const char* key, double fallback, std::size_t channel) {
      const Node* value = kwargs.find_direct(key);
      if (value == nullptr || value->is_null()) return fallback;
      return value->is_container() ? value->list.at(channel).as<double>() : value->as<double>();
    };
    const auto is_by_channel = [&] {
      const auto axes = kwargs.get<std::vector<std::string>>("axes", {"channel"});
      return channels == 1 || std::ranges::find(axes, "channel") == axes.end();
    };
    for (std::size_t c = 0; c < schemes.size(); ++c) {
      if (id == "scale_linear") {
        schemes[c].scale(of_channel("gain", 1, c), of_channel("offset", 0, c));
      } else if (id == "clip") {
        schemes[c].clip(of_channel("min", -1e300, c), of_channel("max", 1e300, c));
      } else if (id == "zero_mean_unit_variance" && is_by_channel()) {
        schemes[c].take("ZScoreNormalization");
      } else if (id == "scale_range" && is_by_channel() &&
                 kwargs.get<double>("min_percentile", 0) == 0 &&
                 kwargs.get<double>("max_percentile", 100) == 100) {
        schemes[c].take("RescaleTo01Normalization");
      } else {
        refuse_for_nnunet("an image is normalized by what nnU-Net has no scheme for (" + id +
                          "); expected NormalizeIntensityd or ScaleIntensityd of each channel by "
                          "itself (channel_wise=true), ScaleIntensityRanged or Clipd");
      }
    }
  }
  return schemes;
}

/// Takes the image's transform of a name out of the model's transforms; null: there is none.
Node taken_transform(Node& config, const std::string& x_key, const std::string& name) {
  Node found;
  for (const char* split : {"predict", "valid"}) {
    Node* list = config.find(std::string("data.transforms.") + split);
    if (list == nullptr || list->is_null()) continue;
    std::vector<Node> left;
    for (const Node& transform : list->list) {
      const auto target = transform.get<std::string>("_target_");
      const Node& keys = transform.at("keys");
      const bool is_ours = keys.kind != config::Kind::list || keys.list.empty()
                               ? keys.as<std::string>() == x_key
                               : std::ranges::any_of(keys.list, [&](const Node& key) {
                                   return key.as<std::string>() == x_key;
                                 });
      if (!is_ours || target.substr(target.rfind('.') + 1) != name) {
        left.push_back(transform);
      } else if (found.is_null()) {
        found = transform;
      }
    }
    list->list = std::move(left);
    if (!found.is_null()) break;
  }
  return found;
}

std::vector<double> spacing_of(const NnunetOptions& options,
                               const Node& resampling,
                               const std::string& reader,
                               std::size_t dims) {
  std::vector<double> spacing = options.spacing;
  if (spacing.empty() && !resampling.is_null()) {
    const Node& pixdim = resampling.at("pixdim");
    spacing = pixdim.is_container() ? pixdim.as<std::vector<double>>()
                                    : std::vector<double>{pixdim.as<double>()};
    spacing.resize(dims, spacing.back());
    if (std::ranges::all_of(spacing, [](double side) { return side <= 0; }))
      spacing.clear();  // as they are
  }
  if (spacing.empty() && reader == "NaturalImage2DIO") spacing.assign(dims, 1);
  const bool are_positive = std::ranges::all_of(spacing, [](double side) { return side > 0; });
  if (spacing.size() == dims && are_positive) return spacing;
  refuse_for_nnunet(
      fmt::format("nnU-Net resamples every image to one distance between voxels, which this model "
                  "does not say; expected nnunet.spacing={}",
                  dims == 3 ? "[3,1,1]" : "[1,1]"));
}

/// Sets what the options of NnunetPreprocessingd leave to their defaults, which plans.json says.
void complete_preprocessing(Node& own) {
  const std::size_t channels = own.at("normalization_schemes").list.size();
  const auto given = [&](const char* key, const Node& fallback) {
    const Node* found = own.find_direct(key);
    return found == nullptr || found->is_null() ? fallback : *found;
  };
  Node masks = given("use_mask_for_norm", Node::make_list());
  if (masks.list.empty()) masks = Node::make_list(std::vector<bool>(channels, false));
  Node kwargs = given("resampling_fn_data_kwargs", Node::make_map());
  if (kwargs.find_direct("is_seg") == nullptr) kwargs.set("is_seg", Node::make_boolean(false));
  const char* intensities_key = "foreground_intensity_properties_per_channel";
  Node intensities = given(intensities_key, Node::make_map());
  for (std::size_t c = 0; c < channels; ++c)
    if (intensities.find_direct(std::to_string(c)) == nullptr)
      intensities.set(std::to_string(c), Node::make_map());
  own.set("use_mask_for_norm", masks);
  own.set("resampling_fn_data",
          given("resampling_fn_data", Node::make_string("resample_data_or_seg_to_shape")));
  own.set("resampling_fn_data_kwargs", kwargs);
  own.set(intensities_key, intensities);
}

}  // namespace

void refuse_for_nnunet(const std::string& what) {
  throw ConfigError("format=nnunet: " + what);
}

Node nnunet_preprocessing(const inference::LoadedModel& model,
                          const NnunetOptions& options,
                          const std::string& reader) {
  const auto dims = static_cast<std::size_t>(model.spatial_dims);
  const auto x_key = model.config.get<std::string>("task.x_key");
  inference::LoadedModel rest;  // for the words of its other transforms
  rest.config = model.config;
  rest.spatial_dims = model.spatial_dims;
  Node own = taken_transform(rest.config, x_key, "NnunetPreprocessingd");
  const Node spacing = taken_transform(rest.config, x_key, "Spacingd");
  const PackagePreprocessing before(rest, "nnunet");
  if (!own.is_null()) {
    if (!before.operations.list.empty() || !spacing.is_null())
      refuse_for_nnunet("other changes of the image than NnunetPreprocessingd");
    const Node* learned = own.find_direct("spacing");
    const bool is_learned =
        learned != nullptr && learned->list.size() == dims &&
        std::ranges::all_of(learned->list, [](const Node& side) { return side.as<double>() > 0; });
    if (!options.spacing.empty() || !is_learned)
      own.set("spacing", Node::make_list(spacing_of(options, {}, reader, dims)));
    complete_preprocessing(own);
    return own;
  }
  std::vector<std::string> names;
  Node intensities = Node::make_map();
  for (const ChannelScheme& scheme : schemes_of(before.operations, model.in_channels)) {
    intensities.set(std::to_string(names.size()), scheme.intensities());
    names.push_back(scheme.name());
  }
  return map_of({{"normalization_schemes", Node::make_list(names)},
                 {"use_mask_for_norm", Node::make_list(std::vector<bool>(names.size(), false))},
                 {"foreground_intensity_properties_per_channel", intensities},
                 {"spacing", Node::make_list(spacing_of(options, spacing, reader, dims))},
                 {"resampling_fn_data", Node::make_string("resample_data_or_seg_to_shape")},
                 {"resampling_fn_data_kwargs",
                  map_of({{"is_seg", Node::make_boolean(false)},
                          {"order", Node::make_integer(1)},
                          {"order_z", Node::make_integer(0)},
                          {"force_separate_z", Node::make_boolean(false)}})}});
}

}  // namespace cytra::app
