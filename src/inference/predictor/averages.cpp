#include "inference/predictor/averages.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "inference/isolated.h"
#include "io/fingerprint.h"

namespace cytra::inference {
namespace {

/// Sums of outputs, one prediction after the other.
class OutputSums {
 public:
  void add(const std::vector<at::Tensor>& outputs) {
    if (count_++ == 0) {
      // A model may hand out a buffer of its own, or its input.
      for (const at::Tensor& output : outputs) sums_.push_back(output.to(at::kFloat, false, true));
      return;
    }
    if (outputs.size() != sums_.size()) {
      throw DataError(
          "predictions that are averaged have {} and {} outputs", sums_.size(), outputs.size());
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (outputs[i].sizes() != sums_[i].sizes()) {
        throw DataError("predictions that are averaged are ({}) and ({})",
                        fmt::join(sums_[i].sizes(), ","),
                        fmt::join(outputs[i].sizes(), ","));
      }
      sums_[i].add_(outputs[i]);
    }
  }
  std::vector<at::Tensor> mean() {
    for (at::Tensor& sum : sums_) sum.div_(static_cast<double>(count_));
    return std::move(sums_);
  }

 private:
  std::vector<at::Tensor> sums_;
  int64_t count_ = 0;
};

using Turn = std::function<at::Tensor(const at::Tensor&)>;

std::vector<at::Tensor> each_output(std::vector<at::Tensor> tensors, const Turn& turn) {
  for (at::Tensor& tensor : tensors) tensor = turn(tensor);
  return tensors;
}

/// The mean of the outputs for windows and for turned windows, the latter turned back. A mean
/// built of such pairs does not depend on how an image was turned, since a + b is b + a.
Forward with_turned(const Forward& forward, const Turn& there, const Turn& back) {
  return mean_of({forward, [=](const at::Tensor& windows) {
                    return each_output(forward(there(windows)), back);
                  }});
}

Forward with_mirrored(const Forward& forward, const std::vector<int64_t>& dims) {
  const auto flip = [dims](const at::Tensor& x) { return at::flip(x, dims); };
  return with_turned(forward, flip, flip);
}

/// Resizes the sides of (N,K,...). Source: torch.nn.functional.interpolate, align_corners=False.
at::Tensor resize_sides(const at::Tensor& x, const std::vector<int64_t>& sides) {
  if (x.sizes().slice(2) == at::IntArrayRef(sides)) return x;
  return sides.size() == 3 ? at::upsample_trilinear3d(x, sides, false)
                           : at::upsample_bilinear2d(x, sides, false);
}

Forward scaled(const Forward& forward, double scale, const std::vector<int64_t>& divisor) {
  if (scale == 1) return forward;
  return [=](const at::Tensor& windows) {
    const std::vector<int64_t> sides = windows.sizes().slice(2).vec();
    std::vector<int64_t> resized;
    for (std::size_t d = 0; d < sides.size(); ++d) {
      const double count = static_cast<double>(sides[d]) * scale / static_cast<double>(divisor[d]);
      resized.push_back(std::max<int64_t>(1, std::llround(count)) * divisor[d]);
    }
    return each_output(forward(resize_sides(windows, resized)), [&](const at::Tensor& output) {
      std::vector<int64_t> back = output.sizes().slice(2).vec();  // perhaps of another resolution
      for (std::size_t d = 0; d < back.size(); ++d) back[d] = back[d] * sides[d] / resized[d];
      return resize_sides(output.to(at::kFloat), back);
    });
  };
}

Forward then(const Forward& forward, const Turn& change) {
  return [=](const at::Tensor& windows) { return each_output(forward(windows), change); };
}

}  // namespace

bool TtaOptions::is_plain() const {
  return mirror_axes.empty() && !rotate90 && scales == TtaOptions().scales;
}

void TtaOptions::check() const {
  if (scales.empty())
    throw ConfigError("scales: expected at least one; [1] means the image's own size only");
}

Forward averaged(std::vector<Forward> members,
                 const TtaOptions& options,
                 const std::vector<int64_t>& divisor,
                 bool exclusive,
                 bool variance) {
  const auto dims = std::ssize(divisor);
  const bool of_probabilities = options.average == "probabilities" || variance;
  if (variance && members.size() == 1 && options.is_plain()) {
    throw ConfigError(
        "predict.save=variance: there is one prediction; expected several: tta.dropout_samples, "
        "tta.mirror_axes, tta.rotate90, tta.scales or several checkpoints");
  }
  if (of_probabilities) {
    for (Forward& member : members) {
      member = then(member, [=](const at::Tensor& logits) {
        at::Tensor p =
            exclusive ? at::softmax(logits, 1, at::kFloat) : logits.to(at::kFloat).sigmoid();
        return variance ? at::cat({p, p.square()}, 1) : p;
      });
    }
  }
  Forward forward = mean_of(std::move(members));
  std::vector<Forward> sizes;
  for (const double scale : options.scales) sizes.push_back(scaled(forward, scale, divisor));
  forward = mean_of(std::move(sizes));
  std::set<int64_t> mirrored;
  for (const int64_t axis : options.mirror_axes) {
    if (axis < -dims || axis >= dims) {
      throw ConfigError("mirror_axes: {}, expected {} to {}: windows have {} spatial axes",
                        axis,
                        -dims,
                        dims - 1,
                        dims);
    }
    if (!mirrored.insert(2 + (axis + dims) % dims).second) {
      throw ConfigError("mirror_axes: the axis {} is there twice, expected each once", axis);
    }
  }
  for (const int64_t dim : mirrored) forward = with_mirrored(forward, {dim});
  if (options.rotate90) {
    const int64_t y = dims, x = dims + 1;
    // Mirroring along both axes is a half turn.
    if (mirrored.count(y) + mirrored.count(x) < 2) forward = with_mirrored(forward, {y, x});
    const auto turn = [=](int64_t times) {
      return [=](const at::Tensor& image) { return at::rot90(image, times, {y, x}); };
    };
    forward = with_turned(forward, turn(1), turn(-1));
  }
  if (!of_probabilities) return forward;
  if (variance) {
    return then(forward, [](const at::Tensor& means) {
      const std::vector<at::Tensor> p = means.chunk(2, 1);  // and the mean square
      return (p[1] - p[0].square()).clamp_min(0);
    });
  }
  return then(forward, [=](const at::Tensor& p) {
    constexpr double kLeast = 1e-30;  // a logit of -69
    return exclusive ? p.clamp_min(kLeast).log() : at::logit(p, 1e-7);
  });
}

Forward mean_of(std::vector<Forward> members) {
  if (members.size() == 1) return std::move(members[0]);
  for (Forward& member : members) member = isolated(std::move(member));
  return [members = std::move(members)](const at::Tensor& windows) {
    OutputSums sums;
    for (const Forward& member : members) sums.add(member(windows));
    return sums.mean();
  };
}

LoadedModel mean_of(std::vector<LoadedModel> models) {
  LoadedModel mean = models.at(0);
  if (models.size() == 1) return mean;
  std::vector<Forward> forwards;
  std::vector<MoveModel> places;
  std::string fingerprints;
  for (const LoadedModel& model : models) {
    if (model.part == 0) forwards.push_back(model.forward);
    places.push_back(model.place);
    fingerprints += model.fingerprint;
    for (std::size_t d = 0; d < mean.divisor.size(); ++d)
      mean.divisor[d] = std::lcm(mean.divisor[d], model.divisor.at(d));
  }
  if (models.back().part > 0)
    mean.out_channels = mean.config.get<int64_t>("task.num_classes", mean.out_channels);
  mean.path = fmt::format("{} and {} more", mean.path, models.size() - 1);
  mean.network = nullptr;
  mean.features = nullptr;
  mean.torchscript = nullptr;
  mean.onnx = nullptr;
  mean.forward = mean_of(std::move(forwards));
  mean.place = [places = std::move(places)](c10::Device device, bool on_tensor_cores) {
    for (const MoveModel& place : places) place(device, on_tensor_cores);
  };
  mean.fingerprint = io::fingerprint(fingerprints);
  return mean;
}

}  // namespace cytra::inference
