// HausdorffDistanceMetric, SurfaceDistanceMetric, SurfaceDiceMetric: how far apart the surfaces of
// predicted and true masks are. Source: monai.metrics. Straight distances are in um where an
// image's spacing is known, else in voxels; those in steps (taxicab, chessboard) in voxels. If only
// one of the two has a mask, the distance is infinite; if none has, it does not count.
#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "metrics/masks/mask_metric.h"
#include "ops/labels/distance.h"

namespace cytra::metrics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The distances from each voxel of one mask's surface to the other's surface, float32.
struct SurfaceDistances {
  at::Tensor to_truth, to_prediction;
};

/// Voxels of a mask ([Z,]Y,X) bool that have a face outside of it.
at::Tensor surface_of(const at::Tensor& mask) {
  at::Tensor inner = mask;
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const at::Tensor beyond = at::zeros_like(mask.narrow(d, 0, 1));
    const int64_t most = mask.size(d) - 1;
    inner = inner & at::cat({mask.narrow(d, 1, most), beyond}, d) &
            at::cat({beyond, mask.narrow(d, 0, most)}, d);
  }
  return mask & ~inner;
}

/// Both masks within the smallest box that holds them.
void crop_to_box(at::Tensor& prediction, at::Tensor& truth) {
  for (int64_t d = 0; d < truth.dim(); ++d) {
    const at::Tensor planes =
        (prediction | truth).movedim(d, 0).flatten(1).any(1).nonzero().flatten();
    const int64_t first = planes[0].item<int64_t>(), last = planes[-1].item<int64_t>();
    prediction = prediction.narrow(d, first, last - first + 1);
    truth = truth.narrow(d, first, last - first + 1);
  }
}

/// Voxel sizes of an image where all are known, else none.
std::vector<double> sampling_of(const std::vector<std::vector<double>>& spacing_um, int64_t image) {
  if (image >= std::ssize(spacing_um)) return {};
  const std::vector<double>& sizes = spacing_um[static_cast<std::size_t>(image)];
  const bool is_known = std::ranges::all_of(sizes, [](double s) { return s > 0; });
  return is_known ? sizes : std::vector<double>{};
}

struct SurfaceOptions : MaskOptions {
  std::string distance_metric = "euclidean";
  void visit(auto& v) {
    MaskOptions::visit(v);
    v("distance_metric",
      distance_metric,
      "straight lines; steps through faces (taxicab), or through corners, too (chessboard)",
      {"euclidean", "taxicab", "chessboard"});
  }
};

class SurfaceMetric : public ClassMeans {
 public:
  /// Leaves the background out by default, as MONAI does.
  SurfaceMetric(std::string name, const SurfaceOptions& options)
      : ClassMeans(std::move(name), options, /*include_background=*/false),
        distance_metric_(options.distance_metric) {}

 protected:
  /// The value of the k-th class that counts; neither of its masks is empty.
  virtual double value_of(const SurfaceDistances& distances, int64_t k) const = 0;
  /// The value where only one of the two masks has the class.
  virtual double value_if_missing() const { return kInfinity; }

 private:
  Values measure(const Compared& batch) const override {
    const at::Tensor predicted = batch.prediction.ne(0).cpu(), real = batch.truth.ne(0).cpu();
    at::Tensor values = at::zeros({real.size(0), real.size(1)}, at::kDouble),
               counts = at::zeros({real.size(0), real.size(1)}, at::kBool);
    for (int64_t n = 0; n < real.size(0); ++n) {
      for (int64_t k = 0; k < real.size(1); ++k) {
        at::Tensor p = predicted[n][k], t = real[n][k];
        const bool has_p = p.any().item<bool>(), has_t = t.any().item<bool>();
        if (!has_p && !has_t) continue;
        counts[n][k] = true;
        if (!has_p || !has_t) {
          values[n][k] = value_if_missing();
          continue;
        }
        crop_to_box(p, t);
        const at::Tensor p_surface = surface_of(p), t_surface = surface_of(t);
        const std::vector<double> sampling = sampling_of(batch.spacing_um, n);
        const auto distances = [&](const at::Tensor& from, const at::Tensor& to) {
          const at::Tensor all = distance_metric_ == "euclidean"
                                     ? ops::distance_transform(~to, sampling)
                                     : ops::step_distance(~to, distance_metric_ == "taxicab");
          return all.masked_select(from);
        };
        values[n][k] =
            value_of({distances(p_surface, t_surface), distances(t_surface, p_surface)}, k);
      }
    }
    return {values.to(batch.truth.device()), counts.to(batch.truth.device())};
  }
  std::string distance_metric_;
};

/// The distance that `percentile` of the surface's voxels have at most, the larger of both ways.
class HausdorffMetric final : public SurfaceMetric {
 public:
  struct Options : SurfaceOptions {
    std::optional<double> percentile;
    bool directed = false;
    void visit(auto& v) {
      SurfaceOptions::visit(v);
      v("percentile", percentile, "percentile of the distances; null: 100, the largest", 0, 100);
      v("directed", directed, "from the prediction to the truth alone");
    }
  };
  explicit HausdorffMetric(const Options& options)
      : SurfaceMetric(fmt::format("hd{:g}", options.percentile.value_or(100)), options),
        share_(options.percentile.value_or(100) / 100),
        is_directed_(options.directed) {}

 private:
  double value_of(const SurfaceDistances& distances, int64_t /*k*/) const override {
    const double there = quantile(distances.to_truth);
    return is_directed_ ? there : std::max(there, quantile(distances.to_prediction));
  }
  /// The quantile is interpolated linearly between ranks; at::quantile takes 16 million values at
  /// most.
  double quantile(const at::Tensor& values) const {
    const double rank = share_ * static_cast<double>(values.numel() - 1);
    const auto below = static_cast<int64_t>(rank);
    const auto value = [&](int64_t i) {
      return std::get<0>(values.kthvalue(std::min(i, values.numel() - 1) + 1)).item<double>();
    };
    const double low = value(below);
    return low + (rank - static_cast<double>(below)) * (value(below + 1) - low);
  }
  double share_;
  bool is_directed_;
};
CYTRA_REGISTER(Metric, HausdorffMetric, "HausdorffDistanceMetric");

/// The mean distance of the prediction's surface voxels; symmetric: of both surfaces'.
class SurfaceDistanceMetric final : public SurfaceMetric {
 public:
  struct Options : SurfaceOptions {
    bool symmetric = false;
    void visit(auto& v) {
      SurfaceOptions::visit(v);
      v("symmetric", symmetric, "the distances from both surfaces, as assd; false: from one, asd");
    }
  };
  explicit SurfaceDistanceMetric(const Options& options)
      : SurfaceMetric(options.symmetric ? "assd" : "asd", options),
        is_symmetric_(options.symmetric) {}

 private:
  double value_of(const SurfaceDistances& distances, int64_t /*k*/) const override {
    const at::Tensor& there = distances.to_truth;
    const at::Tensor all = is_symmetric_ ? at::cat({there, distances.to_prediction}) : there;
    return all.mean(at::kDouble).item<double>();
  }
  bool is_symmetric_;
};
CYTRA_REGISTER(Metric, SurfaceDistanceMetric, "SurfaceDistanceMetric");

/// The share of both surfaces' voxels that are within a threshold of the other surface.
class SurfaceDiceMetric final : public SurfaceMetric {
 public:
  struct Options : SurfaceOptions {
    std::vector<double> class_thresholds;
    void visit(auto& v) {
      SurfaceOptions::visit(v);
      v("class_thresholds",
        class_thresholds,
        "distance that is near enough, um where the spacing is known, else voxels; for each class "
        "that counts, or one for all",
        config::required);
      v("use_subvoxels", config::Unused{{"false"}}, "surfaces are voxels");
    }
    void check() const {
      for (const double threshold : class_thresholds) {
        if (threshold >= 0 && std::isfinite(threshold)) continue;
        throw ConfigError("class_thresholds: {}, expected 0 or a distance", threshold);
      }
    }
  };
  explicit SurfaceDiceMetric(const Options& options)
      : SurfaceMetric("surface_dice", options), thresholds_(options.class_thresholds) {}

 private:
  double value_of(const SurfaceDistances& distances, int64_t k) const override {
    if (thresholds_.size() > 1 && static_cast<std::size_t>(k) >= thresholds_.size()) {
      throw ConfigError(
          "SurfaceDiceMetric: class_thresholds has {} numbers, but there are more classes; "
          "expected one for each that counts, or one for all",
          thresholds_.size());
    }
    const double threshold = thresholds_[thresholds_.size() > 1 ? static_cast<std::size_t>(k) : 0];
    const at::Tensor near = at::cat({distances.to_truth, distances.to_prediction}).le(threshold);
    return near.to(at::kDouble).mean().item<double>();
  }
  double value_if_missing() const override { return 0; }
  std::vector<double> thresholds_;
};
CYTRA_REGISTER(Metric, SurfaceDiceMetric, "SurfaceDiceMetric");

}  // namespace
}  // namespace cytra::metrics
