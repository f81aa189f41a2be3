// NnunetPreprocessingd: nnU-Net's crop to what is not 0, normalization and resampling. Source:
// nnunetv2 2.8.1: preprocessing.{preprocessors.default_preprocessor, cropping, normalization,
// resampling}; skimage.transform.resize and scipy.ndimage.zoom, which those call.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/strings.h"
#include "config/registry.h"
#include "data/sample/pad_crop.h"
#include "data/sample/resample.h"
#include "data/sample/spatial_options.h"
#include "data/sample/spline.h"
#include "data/sample/voxel_frame.h"
#include "ops/labels/operations.h"
#include "ops/labels/row_step.h"

namespace cytra::data::spatial {
namespace {

const std::vector<std::string> kNnunetSchemes{"ZScoreNormalization",
                                              "CTNormalization",
                                              "NoNormalization",
                                              "RescaleTo01Normalization",
                                              "RGBTo01Normalization"};
constexpr double kLeastDivisor = 1e-8;

/// The two voxels along an axis beside each place of the result, and their weights.
struct Neighbours {
  std::vector<std::array<int64_t, 2>> offset;
  std::vector<std::array<double, 2>> weight;
  Neighbours(int64_t from, int64_t to, int64_t stride) {
    const double zoom = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 1.0;
    for (int64_t i = 0; i < to; ++i) {
      const double place = std::min(static_cast<double>(i) * zoom, static_cast<double>(from - 1));
      const auto below = static_cast<int64_t>(std::floor(place));
      const double first = 1 - (place - std::floor(place));
      offset.push_back({below * stride, std::min(below + 1, from - 1) * stride});
      weight.push_back({first, 1 - first});
    }
  }
};

/// TotalSegmentator's change_spacing(order=1, dtype=int32) to the last bit: linear, the centres of
/// the outer voxels stay, cut to whole numbers. Shape: (C,Z,Y,X) -> (C,*size) float32. Source:
/// TotalSegmentator 2.18, resampling.py, and scipy.ndimage.zoom.
at::Tensor change_spacing(const at::Tensor& image, const std::vector<int64_t>& size) {
  const at::Tensor from = image.to(at::kFloat).contiguous();
  const Neighbours along_z(from.size(1), size[0], from.stride(1)),
      along_y(from.size(2), size[1], from.stride(2)), along_x(from.size(3), size[2], 1);
  const at::Tensor result = at::empty({from.size(0), size[0], size[1], size[2]});
  const auto* values = from.const_data_ptr<float>();
  auto* made = result.mutable_data_ptr<float>();
  at::parallel_for(0, from.size(0) * size[0] * size[1], 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto y = static_cast<std::size_t>(row % size[1]),
                 z = static_cast<std::size_t>(row / size[1] % size[0]);
      const float* channel = values + row / size[1] / size[0] * from.stride(0);
      for (std::size_t x = 0; x < static_cast<std::size_t>(size[2]); ++x) {
        double sum = 0;  // in scipy's order: cutting to whole numbers shows the last bit
        for (std::size_t i = 0; i < 2; ++i) {
          for (std::size_t j = 0; j < 2; ++j) {
            for (std::size_t k = 0; k < 2; ++k) {
              const float value =
                  channel[along_x.offset[x][i] + along_y.offset[y][j] + along_z.offset[z][k]];
              sum += static_cast<double>(value) * along_x.weight[x][i] * along_y.weight[y][j] *
                     along_z.weight[z][k];
            }
          }
        }
        made[row * size[2] + static_cast<int64_t>(x)] = static_cast<float>(std::trunc(sum));
      }
    }
  });
  return result;
}

class NnunetPreprocessingd final : public Transform {
 public:
  /// The arguments of resample_data_or_seg_to_shape, resample_torch_fornnunet and
  /// resample_torch_simple.
  struct Resampling {
    int64_t order = 3, order_z = 0;
    std::optional<bool> force_separate_z = false;
    double separate_z_anisotropy_threshold = 3;
    std::string mode = "linear", aniso_axis_mode = "nearest-exact";
    void visit(auto& v) {
      v("is_seg", config::Unused{{"false"}}, "images are resampled");
      v("order", order, "of the spline", 0, 5);
      v("order_z", order_z, "along a coarse axis that is resampled by itself", 0, 5);
      v("force_separate_z", force_separate_z, "null: whether one axis is that coarse");
      v("separate_z_anisotropy_threshold",
        separate_z_anisotropy_threshold,
        "how many times as coarse as the finest");
      v("mode", mode, "of resample_torch", {"linear", "nearest-exact"});
      v("aniso_axis_mode",
        aniso_axis_mode,
        "of resample_torch along a coarse axis",
        {"linear", "nearest-exact"});
      v("num_threads", config::Unused{}, "as many as the program has");
      v("device", config::Unused{}, "the CPU");
      v("memefficient_seg_resampling", config::Unused{}, "it is for labels");
    }
  };
  struct Options : KeyOptions {
    std::vector<std::string> normalization_schemes;
    std::vector<bool> use_mask_for_norm;
    config::Node foreground_intensity_properties_per_channel = config::Node::make_map();
    std::vector<double> spacing, change_spacing;
    std::string resampling_fn_data = "resample_data_or_seg_to_shape";
    Resampling resampling_fn_data_kwargs;
    void visit(auto& v) {
      KeyOptions::visit(v);
      v("normalization_schemes", normalization_schemes, "one per channel", config::required);
      v("use_mask_for_norm",
        use_mask_for_norm,
        "ZScoreNormalization of what is not 0 alone, per channel; []: of all");
      v("foreground_intensity_properties_per_channel",
        foreground_intensity_properties_per_channel,
        "of CTNormalization: {\"0\": {mean, std, percentile_00_5, percentile_99_5}}");
      v("spacing",
        spacing,
        "millimetres between voxels, (Z,)Y,X, to resample to; 0: as in the image; []: images are "
        "not resampled");
      v("change_spacing",
        change_spacing,
        "millimetres between voxels, Z,Y,X, to which TotalSegmentator resamples volumes before all "
        "else; []: it does not");
      v("resampling_fn_data",
        resampling_fn_data,
        "how",
        {"resample_data_or_seg_to_shape", "resample_torch_fornnunet", "resample_torch_simple"});
      v("resampling_fn_data_kwargs", resampling_fn_data_kwargs, "its arguments");
    }
    void check() const {
      for (const std::string& scheme : normalization_schemes) {
        if (contains(kNnunetSchemes, scheme)) continue;
        throw ConfigError("normalization_schemes: there is no '{}', expected {}.{}",
                          printable(scheme),
                          join(kNnunetSchemes, ", "),
                          suggestion(scheme, kNnunetSchemes));
      }
      const std::size_t channels = normalization_schemes.size();
      if (!use_mask_for_norm.empty() && use_mask_for_norm.size() != channels) {
        throw ConfigError("use_mask_for_norm: {} entries, expected {}, as in normalization_schemes",
                          use_mask_for_norm.size(),
                          channels);
      }
      for (const double side : spacing)
        if (!(side >= 0)) throw ConfigError("spacing: expected positive numbers, or 0");
      for (const double side : change_spacing) {
        if (!(side > 0) || change_spacing.size() != 3)
          throw ConfigError("change_spacing: expected three positive numbers");
      }
    }
  };
  explicit NnunetPreprocessingd(const Options& options) : options_(options) {
    for (std::size_t c = 0; c < options.normalization_schemes.size(); ++c) {
      if (options.normalization_schemes[c] != "CTNormalization") {
        ranges_.emplace_back();
        continue;
      }
      const config::Node& found =
          options.foreground_intensity_properties_per_channel.at(std::to_string(c));
      ranges_.push_back({found.get<double>("mean"),
                         found.get<double>("std"),
                         found.get<double>("percentile_00_5"),
                         found.get<double>("percentile_99_5")});
    }
  }

  void apply(Sample& sample, Rng&) const override {
    options_.for_each(sample, [&](const at::Tensor& given, std::size_t, auto& geometry) {
      if (static_cast<std::size_t>(given.size(0)) != ranges_.size()) {
        throw DataError("{} channels, expected {}, as normalization_schemes has",
                        given.size(0),
                        ranges_.size());
      }
      std::vector<double> now = spacing_of(geometry, static_cast<std::size_t>(given.dim() - 1));
      const at::Tensor image = changed(given, now);
      const at::Tensor is_inside = image.ne(0).any(0);
      const auto dims = static_cast<std::size_t>(image.dim() - 1);
      std::vector<int64_t> start, size;
      for (std::size_t d = 0; d < dims; ++d) {
        at::Tensor line = is_inside;
        for (auto other = static_cast<int64_t>(dims) - 1; other >= 0; --other)
          if (other != static_cast<int64_t>(d)) line = line.any(other);
        const at::Tensor places = line.nonzero().flatten();
        start.push_back(places.numel() == 0 ? 0 : places[0].template item<int64_t>());
        size.push_back(places.numel() == 0
                           ? image.size(static_cast<int64_t>(d) + 1)
                           : places[-1].template item<int64_t>() + 1 - start.back());
      }
      const at::Tensor cropped = normalized(crop(image.to(at::kFloat), start, size),
                                            crop(is_inside.unsqueeze(0), start, size),
                                            sample.folder);
      const at::Tensor result = resampled(cropped, now, sample.folder);
      std::vector<double> scale, shift;
      for (std::size_t d = 0; d < dims; ++d) {
        const auto axis = static_cast<int64_t>(d) + 1;
        // Of change_spacing the centres of the outer voxels stay, of nnU-Net the edges.
        const auto before = static_cast<double>(given.size(axis)),
                   after = static_cast<double>(image.size(axis));
        const double change = before == after ? 1
                              : after > 1     ? (before - 1) / (after - 1)
                                              : 2 * before;  // all are next to the only one
        scale.push_back(static_cast<double>(size[d]) / static_cast<double>(result.size(axis)));
        shift.push_back((static_cast<double>(start[d]) + scale.back() / 2 - 0.5) * change);
        scale.back() *= change;
      }
      move_voxels(geometry, scale, shift);
      return result;
    });
  }

 private:
  struct Range {
    double mean = 0, std = 1, lower = 0, upper = 0;
  };

  /// Millimetres between voxels, (Z,)Y,X; 0: not known.
  std::vector<double> spacing_of(const io::Geometry& geometry, std::size_t dims) const {
    std::vector<double> spacing;
    for (std::size_t d = 3 - dims; d < 3; ++d) {
      spacing.push_back(geometry.spacing_um[d] / 1000);
      if (options_.change_spacing.empty() || !geometry.has_affine()) continue;
      const auto& to = geometry.affine;  // nibabel's, whose header holds 32 bits
      spacing.back() = static_cast<float>(std::hypot(to[2 - d], to[6 - d], to[10 - d]));
    }
    return spacing;
  }

  /// The image that TotalSegmentator gives nnU-Net, and its spacing there in place of `spacing`.
  at::Tensor changed(const at::Tensor& image, std::vector<double>& spacing) const {
    if (options_.change_spacing.empty() || spacing == options_.change_spacing) return image;
    if (spacing.size() != 3) throw DataError("a plane, TotalSegmentator's models are for volumes");
    const std::vector<int64_t> size = size_for(image, spacing, options_.change_spacing);
    spacing = options_.change_spacing;
    return spatial::change_spacing(image, size);
  }

  static std::vector<int64_t> size_for(const at::Tensor& image,
                                       const std::vector<double>& now,
                                       const std::vector<double>& wanted) {
    std::vector<int64_t> size;
    for (std::size_t d = 0; d < now.size(); ++d) {
      if (!(now[d] > 0)) {
        throw DataError(
            "nnU-Net resamples to the spacing that it learned, and the file does not "
            "have the distance between voxels");
      }
      const int64_t voxels = image.size(static_cast<int64_t>(d) + 1);
      size.push_back(std::llrint(now[d] / wanted[d] * static_cast<double>(voxels)));
      if (size.back() >= 1 && size.back() <= 1'000'000) continue;
      throw DataError(
          "{} voxels of {:.6g} mm would become {} of {:.6g} mm; expected millimetres in both",
          voxels,
          now[d],
          size.back(),
          wanted[d]);
    }
    return size;
  }

  at::Tensor normalized(const at::Tensor& given,
                        const at::Tensor& is_inside,
                        const std::string& folder) const {
    at::Tensor image = ops::room_for(given.sizes().vec(), at::kFloat, folder).copy_(given);
    at::Tensor mask;
    for (std::size_t c = 0; c < ranges_.size(); ++c) {
      const std::string& scheme = options_.normalization_schemes[c];
      at::Tensor channel = image[static_cast<int64_t>(c)];
      if (scheme == "ZScoreNormalization") {
        const bool is_masked = !options_.use_mask_for_norm.empty() && options_.use_mask_for_norm[c];
        if (is_masked && !mask.defined()) {
          ops::FillHoles fill;
          fill.connectivity = 1;
          // A plane is a stack of one there, in which nothing is enclosed.
          mask = image.dim() == 3 ? is_inside[0] : fill(is_inside.to(at::kByte))[0].gt(0);
        }
        const at::Tensor values =
            (is_masked ? channel.masked_select(mask) : channel.flatten()).to(at::kDouble);
        if (values.numel() == 0) continue;
        const double mean = values.mean().item<double>();
        const double std = std::max(values.std(/*unbiased=*/false).item<double>(), kLeastDivisor);
        const at::Tensor scaled = (channel - mean) / std;
        channel.copy_(is_masked ? at::where(mask, scaled, channel) : scaled);
      } else if (scheme == "CTNormalization") {
        const Range& range = ranges_[c];
        channel.clamp_(range.lower, range.upper)
            .sub_(range.mean)
            .div_(std::max(range.std, kLeastDivisor));
      } else if (scheme == "RescaleTo01Normalization") {
        channel.sub_(channel.min());
        channel.div_(channel.max().clamp_min(kLeastDivisor));
      } else if (scheme == "RGBTo01Normalization") {
        if (channel.min().item<float>() < 0 || channel.max().item<float>() > 255)
          throw DataError(
              "RGBTo01Normalization: values beyond 0 and 255, expected colours of 8 bits");
        channel.div_(255);
      }
    }
    return image;
  }

  at::Tensor resampled(const at::Tensor& image,
                       const std::vector<double>& now,
                       const std::string& folder) const {
    if (options_.spacing.empty()) return image;
    const auto dims = static_cast<std::size_t>(image.dim() - 1);
    if (options_.spacing.size() != dims) {
      throw DataError(
          "{} spatial dimensions, spacing has {} numbers", dims, options_.spacing.size());
    }
    std::vector<double> wanted = options_.spacing;
    for (std::size_t d = 0; d < dims; ++d)
      if (wanted[d] == 0) wanted[d] = now[d];
    const std::vector<int64_t> size = size_for(image, now, wanted);
    if (image.sizes().slice(1) == at::IntArrayRef(size)) return image;
    const std::optional<std::size_t> coarse = coarse_axis(now, wanted);
    const Resampling& how = options_.resampling_fn_data_kwargs;
    const bool is_spline = options_.resampling_fn_data == "resample_data_or_seg_to_shape";
    const auto to_size = [&](const at::Tensor& one, const std::vector<int64_t>& own) {
      if (one.sizes().slice(1) == at::IntArrayRef(own)) return one;
      return is_spline ? zoomed(one, own, how.order, folder) : interpolated(one, own, how.mode);
    };
    if (!coarse) return to_size(image, size);
    // Planes first, then the coarse axis.
    const auto axis = static_cast<int64_t>(*coarse) + 1;
    std::vector<int64_t> plane = size;
    plane.erase(plane.begin() + static_cast<std::ptrdiff_t>(*coarse));
    const std::vector<at::Tensor> planes =
        mapped(image.unbind(axis), [&](const at::Tensor& one) { return to_size(one, plane); });
    const at::Tensor stack = at::stack(planes, axis);
    if (stack.size(axis) == size[*coarse]) return stack;
    return is_spline
               ? sample_spline(stack, zoom_matrix(stack, size), size, how.order_z, "border", false)
               : interpolated(stack, size, how.aniso_axis_mode);
  }

  /// The axis that is resampled by itself.
  std::optional<std::size_t> coarse_axis(const std::vector<double>& now,
                                         const std::vector<double>& wanted) const {
    const Resampling& how = options_.resampling_fn_data_kwargs;
    const bool is_simple = options_.resampling_fn_data == "resample_torch_simple";
    if (now.size() != 3 || is_simple || !how.force_separate_z.value_or(true)) return {};
    for (const std::vector<double>* spacing : {&now, &wanted}) {
      const auto [least, most] = std::minmax_element(spacing->begin(), spacing->end());
      if (!how.force_separate_z && *most / *least <= how.separate_z_anisotropy_threshold) continue;
      if (std::count(spacing->begin(), spacing->end(), *most) != 1) return {};
      return static_cast<std::size_t>(most - spacing->begin());
    }
    return {};
  }

  /// From a voxel of the result to one of the image, both counted from their first one.
  static at::Tensor zoom_matrix(const at::Tensor& image, const std::vector<int64_t>& size) {
    const auto dims = std::ssize(size);
    at::Tensor matrix = at::eye(dims + 1, at::kDouble);
    for (int64_t d = 0; d < dims; ++d) {
      const double scale = static_cast<double>(image.size(d + 1)) /
                           static_cast<double>(size[static_cast<std::size_t>(d)]);
      matrix[d][d] = scale;
      matrix[d][dims] = scale / 2 - 0.5;
    }
    return matrix;
  }

  /// skimage.transform.resize(mode="edge", anti_aliasing=False) of each channel, whose result stays
  /// within the channel's values.
  static at::Tensor zoomed(const at::Tensor& image,
                           const std::vector<int64_t>& size,
                           int64_t order,
                           const std::string& folder) {
    const at::Tensor result =
        sample_spline(image, zoom_matrix(image, size), size, order, "border", false, folder);
    std::vector<int64_t> shape(static_cast<std::size_t>(image.dim()), 1);
    shape[0] = -1;
    const at::Tensor flat = image.flatten(1);
    return result.clamp(flat.amin(1).view(shape), flat.amax(1).view(shape));
  }

  static at::Tensor interpolated(const at::Tensor& image,
                                 const std::vector<int64_t>& size,
                                 const std::string& mode) {
    return resize(image, size, mode == "linear" ? "bilinear" : mode, /*align_corners=*/false);
  }

  Options options_;
  std::vector<Range> ranges_;
};
CYTRA_REGISTER(Transform, NnunetPreprocessingd, "NnunetPreprocessingd");

}  // namespace
}  // namespace cytra::data::spatial
