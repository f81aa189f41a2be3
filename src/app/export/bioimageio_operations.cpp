#include "app/export/bioimageio_operations.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "data/transforms/load_image.h"
#include "inference/decoders/decoder.h"
#include "ops/windows/sums.h"

namespace cytra::app {
namespace {

using config::Node;

Node real(double value) {
  return Node::make_real(value);
}

Node operation(const char* id, std::vector<std::pair<std::string, Node>> kwargs) {
  Node made = map_of({{"id", text_node(id)}});
  if (!kwargs.empty()) made.set("kwargs", map_of(std::move(kwargs)));
  return made;
}

/// One text or a list of them; none without the key.
std::vector<std::string> texts_of(const Node& map, const char* key) {
  const Node* found = map.find_direct(key);
  if (found == nullptr || found->is_null()) return {};
  if (found->kind == config::Kind::list) return found->as<std::vector<std::string>>();
  return {found->as<std::string>()};
}

/// One number or a list of them; none without the key.
std::vector<double> numbers_of(const Node& map, const char* key) {
  const Node* found = map.find_direct(key);
  if (found == nullptr || found->is_null()) return {};
  if (found->kind == config::Kind::list) return found->as<std::vector<double>>();
  return {found->as<double>()};
}

/// Makes the operations of our transforms.
class PreprocessingWords {
 public:
  PreprocessingWords(const inference::LoadedModel& model,
                     const std::string& format,
                     PackagePreprocessing& made)
      : made_(made), format_(format), x_key_(model.config.get<std::string>("task.x_key")) {
    axes_ = model.spatial_dims == 3 ? std::vector<std::string>{"z", "y", "x"}
                                    : std::vector<std::string>{"y", "x"};
    const Node& all = model.config.at("data.transforms");
    const Node* list = all.find_direct("predict");
    if (list == nullptr || list->is_null()) list = &all.at("valid");
    for (const Node& transform : list->list) add(transform);
    if (!is_loaded_) {
      throw ConfigError("format={}: the package has one input, but '{}' is made of several images",
                        format_,
                        x_key_);
    }
  }

 private:
  void add(const Node& transform) {
    const std::vector<std::string> keys = texts_of(transform, "keys");
    const bool has_key = contains(keys, x_key_);
    if (data::loads_images(transform)) {
      is_loaded_ = is_loaded_ || has_key;
      return;
    }
    for (const char* made : {"name", "names"}) {
      const std::vector<std::string> names = texts_of(transform, made);
      if (contains(names, x_key_)) refuse(transform, "it makes the image of others");
    }
    if (!has_key) return;
    Node own = transform;
    own.set("keys", Node::make_list(std::vector<std::string>{x_key_}));
    made_.transforms.push_back(own);
    const auto target = transform.get<std::string>("_target_");
    const std::string name = target.substr(target.rfind('.') + 1);
    if (name == "EnsureChannelFirstd" || name == "EnsureTyped" || name == "ToTensord" ||
        name == "CastToTyped")
      return;
    if (name == "BioimageioProcessingd") {
      for (const Node& operation : transform.at("operations").list) put(operation);
    } else if (name == "NormalizeIntensityd") {
      add_normalization(transform);
    } else if (name == "ScaleIntensityRanged") {
      const double from = transform.get<double>("a_min"), to = transform.get<double>("a_max");
      if (from == to) refuse(transform, "a_min equals a_max");
      add_linear(1 / (to - from), -from / (to - from));
      add_output_range(transform);
    } else if (name == "ScaleIntensityRangePercentilesd") {
      if (transform.get<bool>("relative", false)) refuse(transform, "relative=true");
      add_range(transform, transform.get<double>("lower"), transform.get<double>("upper"));
      add_output_range(transform);
    } else if (name == "ScaleIntensityd") {
      const Node* least = transform.find_direct("minv");
      const Node* most = transform.find_direct("maxv");
      if ((least != nullptr && least->is_null()) || (most != nullptr && most->is_null()))
        refuse(transform, "minv or maxv=null");
      const double low = transform.get<double>("minv", 0), high = transform.get<double>("maxv", 1);
      add_range(transform, 0, 100);
      add_linear(high - low, low);
    } else if (name == "ShiftIntensityd") {
      add_linear(1, transform.get<double>("offset"));
    } else if (name == "Clipd") {
      if (transform.get<bool>("percentile", true)) refuse(transform, "percentile=true");
      add_clip(&transform.at("low"), &transform.at("high"));
    } else {
      refuse(transform, "it has no counterpart there");
    }
  }

  [[noreturn]] void refuse(const Node& transform, const std::string& why) const {
    throw ConfigError(
        "format={}: the package can't say the transform {}: {}; expected NormalizeIntensityd, "
        "ScaleIntensityd, ScaleIntensityRanged, ScaleIntensityRangePercentilesd, ShiftIntensityd, "
        "Clipd",
        format_,
        printable(transform.get<std::string>("_target_")),
        why);
  }
  void put(Node operation) { made_.operations.list.push_back(std::move(operation)); }
  void add_linear(double gain, double offset) {
    if (gain != 1 || offset != 0)
      put(operation("scale_linear", {{"gain", real(gain)}, {"offset", real(offset)}}));
  }
  Node axes(const Node& transform) const {
    std::vector<std::string> all = axes_;
    if (!transform.get<bool>("channel_wise", false)) all.insert(all.begin(), "channel");
    return Node::make_list(all);
  }
  void add_range(const Node& transform, double lower, double upper) {
    if (lower >= upper || upper <= 1) refuse(transform, "its percentiles");
    put(operation("scale_range",
                  {{"axes", axes(transform)},
                   {"min_percentile", real(lower)},
                   {"max_percentile", real(upper)}}));
  }
  void add_output_range(const Node& transform) {
    const Node *low = transform.find_direct("b_min"), *high = transform.find_direct("b_max");
    const bool has_low = low != nullptr && !low->is_null(),
               has_high = high != nullptr && !high->is_null();
    if (has_low && has_high) add_linear(high->as<double>() - low->as<double>(), low->as<double>());
    if (transform.get<bool>("clip", false)) add_clip(low, high);
  }
  void add_clip(const Node* low, const Node* high) {
    std::vector<std::pair<std::string, Node>> bounds;
    if (low != nullptr && !low->is_null()) bounds.emplace_back("min", real(low->as<double>()));
    if (high != nullptr && !high->is_null()) bounds.emplace_back("max", real(high->as<double>()));
    if (!bounds.empty()) put(operation("clip", bounds));
  }
  void add_normalization(const Node& transform) {
    const auto mean = numbers_of(transform, "subtrahend");
    const auto deviation = numbers_of(transform, "divisor");
    if (transform.get<bool>("nonzero", false)) refuse(transform, "nonzero=true");
    if (mean.empty() && deviation.empty())
      return put(operation("zero_mean_unit_variance", {{"axes", axes(transform)}}));
    if (mean.empty() || deviation.empty()) refuse(transform, "one of subtrahend and divisor alone");
    if (mean.size() > 1 && deviation.size() > 1 && mean.size() != deviation.size())
      refuse(transform, "as many numbers in subtrahend as in divisor");
    std::vector<double> gain, offset;
    for (std::size_t i = 0; i < std::max(mean.size(), deviation.size()); ++i) {
      const double divisor = deviation[deviation.size() == 1 ? 0 : i];
      gain.push_back(1 / (divisor == 0 ? 1 : divisor));
      offset.push_back(-mean[mean.size() == 1 ? 0 : i] * gain.back());
    }
    if (gain.size() == 1) return add_linear(gain[0], offset[0]);
    put(operation("scale_linear",
                  {{"axis", text_node("channel")},
                   {"gain", Node::make_list(gain)},
                   {"offset", Node::make_list(offset)}}));
  }

  PackagePreprocessing& made_;
  std::string format_, x_key_;
  bool is_loaded_ = false;
  std::vector<std::string> axes_;
};

void add_units(const Node& decoder, Node& operations) {
  const auto mean = numbers_of(decoder, "mean"), std = numbers_of(decoder, "std");
  if (mean.size() == 1)
    operations.list.push_back(
        operation("scale_linear", {{"gain", real(std.at(0))}, {"offset", real(mean[0])}}));
  if (mean.size() > 1) {
    operations.list.push_back(operation("scale_linear",
                                        {{"axis", text_node("channel")},
                                         {"gain", Node::make_list(std)},
                                         {"offset", Node::make_list(mean)}}));
  }
}
void add_steps(const Node& steps, Node& operations) {
  for (const Node& step : steps.list) {
    const auto name = step.get<std::string>("_target_");
    if (name != "BioimageioProcessing") {
      log::warn("format=bioimageio: the step {} is not in the package, which ends before it",
                printable(name));
      return;
    }
    for (const Node& operation : step.at("operations").list) operations.list.push_back(operation);
  }
}

}  // namespace

Node map_of(std::vector<std::pair<std::string, Node>> entries) {
  Node map = Node::make_map();
  for (auto& [key, value] : entries) map.set(key, std::move(value));
  return map;
}

PackagePreprocessing::PackagePreprocessing(const inference::LoadedModel& model,
                                           const std::string& format) {
  PreprocessingWords(model, format, *this);
}

PackageOutput::PackageOutput(const inference::LoadedModel& model) {
  const Node& task = model.config.at("task");
  const auto known = inference::decoder_of(task);
  const auto forms = known->forms();
  const bool has_probability = contains(forms, "probability");
  const Node* decoder = task.find_direct("decoder");
  if (has_probability) {
    const bool are_exclusive = known->finish("probability", 0.5).kind == ops::Finish::Kind::softmax;
    operations.list.push_back(are_exclusive ? operation("softmax", {{"axis", text_node("channel")}})
                                            : operation("sigmoid", {}));
    id = "probability";
  } else {
    id = forms.front() == "value" ? "value" : "raw";
    if (decoder != nullptr && decoder->is_map()) add_units(*decoder, operations);
  }
  if (const Node* steps = task.find_direct("postprocess"); steps != nullptr && !steps->list.empty())
    add_steps(*steps, operations);
  else if (id == "raw")
    log::warn(
        "format=bioimageio: the package gives the network's {}: the steps that make objects of "
        "them are not in it",
        decoder == nullptr ? "channels" : decoder->get<std::string>("method", "channels"));
  if (id == "raw") id = "channels";
}

Node PackageOutput::operations_in(const std::string& input) const {
  Node named = operations;
  for (Node& operation : named.list) {
    Node* reference = operation.find("kwargs.reference_tensor");
    if (reference != nullptr && !reference->is_null()) *reference = text_node(input);
  }
  return named;
}

}  // namespace cytra::app
