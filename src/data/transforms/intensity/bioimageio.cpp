#include "data/transforms/intensity/bioimageio.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

using Axes = std::optional<std::vector<std::string>>;

/// The dimensions of an image (C,[D,]H,W) with these names; all without `axes`.
std::vector<int64_t> dims_by_name(const Axes& axes, int64_t image_dims) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < image_dims; ++d) {
    const char* name = d == 0                ? "channel"
                       : image_dims - d == 3 ? "z"
                       : image_dims - d == 2 ? "y"
                                             : "x";
    if (!axes || contains(*axes, name)) dims.push_back(d);
  }
  return dims;
}

void expect_axis_names(const Axes& axes) {
  if (axes && std::ranges::all_of(*axes, [](const auto& axis) { return axis == "batch"; }))
    throw ConfigError("axes: expected one of the image's, or null for all");
  static const std::vector<std::string> known{"batch", "channel", "z", "y", "x"};
  for (const std::string& axis : axes.value_or(std::vector<std::string>())) {
    if (!contains(known, axis))
      throw ConfigError("axes: '" + axis + "', expected batch, channel, z, y, x");
  }
}

void expect_reference(const std::optional<std::string>& name) {
  if (name && *name != "input")
    throw ConfigError("reference_tensor: '" + printable(*name) + "', expected input or null");
}
/// The tensor that statistics over `dims` are of: the input where `name` is given, else the image.
/// Throws: DataError for an input that is not known or does not fit.
const at::Tensor& reference_of(const std::optional<std::string>& name,
                               const at::Tensor& image,
                               const at::Tensor& input,
                               const std::vector<int64_t>& dims) {
  if (!name) return image;
  if (!input.defined() || input.dim() != image.dim())
    throw DataError("reference_tensor: the unprocessed image is not known here");
  for (int64_t d = 0; d < image.dim(); ++d) {
    if (image.size(d) == input.size(d) || contains(dims, d)) continue;
    throw DataError(
        "reference_tensor: ({}), expected ({}) along the axes that are not taken together",
        fmt::join(input.sizes(), ","),
        fmt::join(image.sizes(), ","));
  }
  return input;
}

/// Numbers, one or one for each channel, shaped to broadcast over an image.
at::Tensor numbers_by_channel(const std::vector<double>& numbers, const at::Tensor& image) {
  if (numbers.size() > 1 && std::ssize(numbers) != image.size(0)) {
    throw DataError(
        "{} channels, expected {}, as numbers are given", image.size(0), numbers.size());
  }
  std::vector<int64_t> shape(static_cast<std::size_t>(image.dim()), 1);
  shape[0] = -1;
  return at::tensor(numbers, at::kDouble).view(shape).to(image.options());
}

/// numpy.quantile over `dims`, which stay with size 1; `is_step`: its method inverted_cdf, else
/// linear.
at::Tensor quantile_over(const at::Tensor& image,
                         const std::vector<int64_t>& dims,
                         double percentile,
                         bool is_step) {
  std::vector<int64_t> kept, order, shape = image.sizes().vec();
  for (int64_t d = 0; d < image.dim(); ++d) {
    if (!contains(dims, d))
      kept.push_back(d);
    else
      shape[static_cast<std::size_t>(d)] = 1;
  }
  order = kept;
  order.insert(order.end(), dims.begin(), dims.end());
  int64_t groups = 1;
  for (const int64_t d : kept) groups *= image.size(d);
  const at::Tensor rows = image.permute(order).reshape({groups, -1}).clone();
  std::vector<float> found;
  for (int64_t i = 0; i < groups; ++i) {
    float* first = rows[i].mutable_data_ptr<float>();
    const int64_t count = rows.size(1);
    if (std::any_of(first, first + count, [](float value) { return std::isnan(value); })) {
      found.push_back(NAN);
      continue;
    }
    const double rank = is_step ? std::max(0., std::ceil(percentile / 100 * count) - 1)
                                : percentile / 100 * static_cast<double>(count - 1);
    float* below = first + static_cast<int64_t>(rank);
    std::nth_element(first, below, first + count);
    const double part = rank - std::floor(rank);
    const double above = part == 0 ? *below : *std::min_element(below + 1, first + count);
    found.push_back(static_cast<float>(*below + part * (above - *below)));
  }
  return at::tensor(found).view(shape);
}

struct BinarizeOperation {
  static constexpr bool kIsPointwise = true;
  std::vector<double> threshold;
  std::string axis = "channel";
  void visit(auto& v) {
    v("threshold", threshold, "values above are 1, others 0", config::required);
    v("axis", axis, "of several thresholds", {"channel"});
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return image.gt(numbers_by_channel(threshold, image)).to(at::kFloat);
  }
};

struct ClipOperation {
  std::optional<double> min, max, min_percentile, max_percentile;
  Axes axes;
  void visit(auto& v) {
    v("min", min, "lower bound");
    v("max", max, "upper bound");
    v("min_percentile", min_percentile, "the percentile that is the lower bound", 0, 100);
    v("max_percentile", max_percentile, "the percentile that is the upper bound", 0, 100);
    v("axes", axes, "axes whose values the percentiles are of");
  }
  void check() const {
    expect_axis_names(axes);
    if ((min && min_percentile) || (max && max_percentile) ||
        !(min || max || min_percentile || max_percentile))
      throw ConfigError("expected min or min_percentile, and max or max_percentile");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    at::Tensor clipped = image;
    const auto dims = dims_by_name(axes, image.dim());
    const bool is_step = axes && !contains(*axes, "batch");
    const auto bound = [&](double percentile) {
      return quantile_over(image, dims, percentile, is_step);
    };
    if (min) clipped = clipped.clamp_min(*min);
    if (min_percentile) clipped = clipped.clamp_min(bound(*min_percentile));
    if (max) clipped = clipped.clamp_max(*max);
    if (max_percentile) clipped = clipped.clamp_max(bound(*max_percentile));
    return clipped;
  }
};

struct EnsureDtypeOperation {
  static constexpr bool kIsPointwise = true;
  std::string dtype;
  void visit(auto& v) {
    v("dtype",
      dtype,
      "the values that a type can hold",
      {"float32",
       "float64",
       "uint8",
       "int8",
       "uint16",
       "int16",
       "uint32",
       "int32",
       "uint64",
       "int64",
       "bool"});
  }
  at::Tensor operator()(const at::Tensor& image) const {
    if (dtype == "float32" || dtype == "float64") return image;
    if (dtype == "bool") return image.ne(0).to(at::kFloat);
    const at::Tensor whole = image.trunc();
    const double bits = std::stod(dtype.substr(dtype.find("int") + 3));
    const double low = dtype[0] == 'u' ? 0 : -std::exp2(bits - 1);
    const double high = std::exp2(dtype[0] == 'u' ? bits : bits - 1) - 1;
    if (whole.numel() > 0 &&
        (whole.min().item<double>() < low || whole.max().item<double>() > high)) {
      throw DataError("ensure_dtype: values that {} does not hold", dtype);
    }
    return whole;
  }
};

struct ScaleLinearOperation {
  static constexpr bool kIsPointwise = true;
  std::vector<double> gain{1}, offset{0};
  std::string axis = "channel";
  void visit(auto& v) {
    v("gain", gain, "factor");
    v("offset", offset, "is added then");
    v("axis", axis, "of several numbers", {"channel"});
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return image * numbers_by_channel(gain, image) + numbers_by_channel(offset, image);
  }
};

struct SigmoidOperation {
  static constexpr bool kIsPointwise = true;
  void visit(auto&) {}
  at::Tensor operator()(const at::Tensor& image) const { return image.sigmoid(); }
};

struct SoftmaxOperation {
  static constexpr bool kIsPointwise = true;
  std::string axis = "channel";
  void visit(auto& v) { v("axis", axis, "over which", {"channel"}); }
  at::Tensor operator()(const at::Tensor& image) const { return image.softmax(0); }
};

struct FixedZeroMeanUnitVarianceOperation {
  static constexpr bool kIsPointwise = true;
  std::vector<double> mean, std;
  std::string axis = "channel";
  void visit(auto& v) {
    v("mean", mean, "is subtracted", config::required);
    v("std", std, "divides, with 1e-6 more", config::required);
    v("axis", axis, "of several numbers", {"channel"});
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return (image - numbers_by_channel(mean, image)) / (numbers_by_channel(std, image) + 1e-6);
  }
};

struct ZeroMeanUnitVarianceOperation {
  Axes axes;
  double eps = 1e-6;
  void visit(auto& v) {
    v("axes", axes, "axes whose values are normalised together; null: all");
    v("eps", eps, "is added to the deviation");
  }
  void check() const { expect_axis_names(axes); }
  at::Tensor operator()(const at::Tensor& image) const {
    const auto dims = dims_by_name(axes, image.dim());
    const at::Tensor exact = image.to(at::kDouble);
    const at::Tensor mean = exact.mean(dims, true),
                     deviation = exact.std(dims, /*unbiased=*/false, true);
    return ((exact - mean) / (deviation + eps)).to(at::kFloat);
  }
};

struct ScaleMeanVarianceOperation {
  Axes axes;
  double eps = 1e-6;
  std::optional<std::string> reference_tensor;
  void visit(auto& v) {
    v("axes", axes, "axes whose values are taken together; null: all");
    v("eps", eps, "is added to deviations");
    v("reference_tensor", reference_tensor, "whose mean and deviation are taken over: input");
  }
  void check() const {
    expect_axis_names(axes);
    expect_reference(reference_tensor);
  }
  at::Tensor operator()(const at::Tensor& image, const at::Tensor& input) const {
    const auto dims = dims_by_name(axes, image.dim());
    const at::Tensor exact = image.to(at::kDouble);
    const at::Tensor reference = reference_of(reference_tensor, image, input, dims).to(at::kDouble);
    const auto deviation = [&](const at::Tensor& values) {
      return values.std(dims, /*unbiased=*/false, true) + eps;
    };
    return ((exact - exact.mean(dims, true)) / deviation(exact) * deviation(reference) +
            reference.mean(dims, true))
        .to(at::kFloat);
  }
};

struct ScaleRangeOperation {
  Axes axes;
  double min_percentile = 0, max_percentile = 100, eps = 1e-6;
  std::optional<std::string> reference_tensor;
  void visit(auto& v) {
    v("axes", axes, "axes whose values are scaled together; null: all");
    v("min_percentile", min_percentile, "what becomes 0", 0, 100);
    v("max_percentile", max_percentile, "what becomes 1", 0, 100);
    v("eps", eps, "is added to the range");
    v("reference_tensor",
      reference_tensor,
      "whose percentiles count: input, the unprocessed image; null: the tensor's own");
  }
  void check() const {
    expect_axis_names(axes);
    expect_reference(reference_tensor);
    if (min_percentile >= max_percentile)
      throw ConfigError("expected min_percentile below max_percentile");
  }
  at::Tensor operator()(const at::Tensor& image, const at::Tensor& input) const {
    const auto dims = dims_by_name(axes, image.dim());
    const at::Tensor& reference = reference_of(reference_tensor, image, input, dims);
    const at::Tensor low = quantile_over(reference, dims, min_percentile, false);
    const at::Tensor high = quantile_over(reference, dims, max_percentile, false);
    return (image - low) / (high - low + eps);
  }
};

using Operate = std::function<at::Tensor(const at::Tensor& image, const at::Tensor& input)>;

struct BioimageioOperation {
  Operate apply;
  bool is_pointwise, takes_input;
};

template <class Operation>
BioimageioOperation operation_by(const config::Node& kwargs) {
  const auto operation = config::parse<Operation>(kwargs);
  if constexpr (std::is_invocable_v<Operation, at::Tensor, at::Tensor>)
    return {operation, false, operation.reference_tensor.has_value()};
  else
    return {[operation](const at::Tensor& image, const at::Tensor&) { return operation(image); },
            IsPointwise<Operation>::value,
            false};
}

BioimageioOperation operation_of(const config::Node& node) {
  static const std::map<std::string, BioimageioOperation (*)(const config::Node&)> known{
      {"binarize", operation_by<BinarizeOperation>},
      {"clip", operation_by<ClipOperation>},
      {"ensure_dtype", operation_by<EnsureDtypeOperation>},
      {"scale_linear", operation_by<ScaleLinearOperation>},
      {"sigmoid", operation_by<SigmoidOperation>},
      {"softmax", operation_by<SoftmaxOperation>},
      {"fixed_zero_mean_unit_variance", operation_by<FixedZeroMeanUnitVarianceOperation>},
      {"zero_mean_unit_variance", operation_by<ZeroMeanUnitVarianceOperation>},
      {"scale_mean_variance", operation_by<ScaleMeanVarianceOperation>},
      {"scale_range", operation_by<ScaleRangeOperation>}};
  const auto id = node.get<std::string>("id");
  if (const auto found = known.find(id); found != known.end()) {
    const config::Node* kwargs = node.find_direct("kwargs");
    return found->second(kwargs == nullptr || kwargs->is_null() ? config::Node::make_map()
                                                                : *kwargs);
  }
  throw ConfigError("{}: the operation '{}' is not one of ours.{}",
                    node.where(),
                    printable(id),
                    suggestion(id, keys_of(known)));
}

struct BioimageioProcessingd : KeyOptions {
  config::Node operations;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("operations", operations, "preprocessing of bioimage.io's model description 0.5");
  }
  void check() const { all_ = std::make_shared<const BioimageioOperations>(operations); }
  at::Tensor operator()(const at::Tensor& image) const { return (*all_)(image, image); }
  RowChange by_rows(const Scan&) const {
    if (!all_->are_pointwise()) return {};
    return [this](const at::Tensor& rows) { return (*all_)(rows, {}); };
  }

 private:
  mutable std::shared_ptr<const BioimageioOperations> all_;
};
CYTRA_REGISTER(Transform, PerKey<BioimageioProcessingd>, "BioimageioProcessingd");

}  // namespace

BioimageioOperations::BioimageioOperations(const config::Node& list) {
  if (list.is_map()) throw ConfigError(list.where() + ": expected a list of operations");
  for (const config::Node& node : list.list) {
    const BioimageioOperation operation = operation_of(node);
    operations_.push_back(operation.apply);
    are_pointwise_ = are_pointwise_ && operation.is_pointwise;
    take_input_ = take_input_ || operation.takes_input;
  }
}

at::Tensor BioimageioOperations::operator()(const at::Tensor& image,
                                            const at::Tensor& input) const {
  at::Tensor changed = image;
  for (const auto& operation : operations_) changed = operation(changed, input);
  return changed.contiguous();
}

}  // namespace cytra::data
