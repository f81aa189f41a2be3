// Source of interpolated scores, and of coarse axes: nnunetv2 2.8.1, inference.export_prediction,
// preprocessing.resampling.default_resampling.
#include "inference/predictor/original_grid.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/resample.h"
#include "data/sample/sample_voxels.h"
#include "data/sample/voxel_axes.h"

namespace cytra::inference {
namespace {

using data::spatial::AxisPlaces;
using data::spatial::Between;

constexpr int64_t kAtOnce = int64_t{1} << 22;  // values

/// The axis that is so much coarser than the finest that it is taken by itself; none: no axis is;
/// -1: several are.
std::optional<int64_t> coarse_axis(const auto& spacing, double from) {
  const auto [least, most] = std::minmax_element(spacing.begin(), spacing.end());
  if (least == spacing.end() || !(*least > 0) || *most / *least <= from) return {};
  return std::count(spacing.begin(), spacing.end(), *most) == 1 ? most - spacing.begin() : -1;
}

/// Takes the nearest voxels along an axis; 0 outside.
at::Tensor nearest_along(const at::Tensor& labels, int64_t dim, const AxisPlaces& places) {
  const at::Tensor voxels = (at::tensor(places.from, at::kDouble) + 0.5).floor().to(at::kLong);
  const int64_t last = labels.size(dim) - 1;
  const at::Tensor is_outside = voxels.lt(0).logical_or(voxels.gt(last));
  at::Tensor taken = labels.index_select(dim, voxels.clamp(0, last));
  if (!is_outside.any().item<bool>()) return taken;
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[static_cast<std::size_t>(dim)] = -1;
  return taken.masked_fill_(is_outside.view(shape), 0);
}

/// Rows whose axes follow those of the file.
class AlongAxes final : public ops::RowStep {
 public:
  AlongAxes(const ToFileGrid& grid, std::vector<AxisPlaces> places)
      : grid_(grid), places_(std::move(places)) {
    while (places_[outer_].axis != 0) ++outer_;
    std::vector<double>& rows = places_[outer_].from;
    is_reversed_ = rows.size() > 1 && rows.front() > rows.back();
    if (is_reversed_) std::ranges::reverse(rows);
  }

  at::Tensor add(const at::Tensor& rows) override {
    kept_ = kept_.defined() ? at::cat({kept_, rows}, 1) : rows;
    const int64_t taken = first_ + kept_.size(1);
    const std::vector<double>& from = places_[outer_].from;
    std::vector<at::Tensor> made;
    while (given_ < std::ssize(from)) {
      int64_t end = given_;
      while (end < std::min(given_ + rows_at_once(), std::ssize(from)) &&
             (taken == grid_.from[0] || last_row(from[static_cast<std::size_t>(end)]) < taken))
        ++end;
      if (end == given_) break;
      if (at::Tensor next = keep(part(given_, end)); next.defined()) made.push_back(next);
      given_ = end;
    }
    const int64_t next =
        given_ < std::ssize(from)
            ? std::clamp(first_row(from[static_cast<std::size_t>(given_)]), first_, taken - 1)
            : taken - 1;
    kept_ = kept_.narrow(1, next - first_, taken - next).clone();
    first_ = next;
    return made.empty() ? at::Tensor() : made.size() == 1 ? made[0] : at::cat(made, 1);
  }
  at::Tensor rest() override {
    if (!all_.rows.defined()) return {};
    const int64_t count = std::min(rows_at_once(), all_.rows.size(1) - told_);
    if (count == 0) {
      all_ = {};
      return {};
    }
    at::Tensor rows = all_.rows.narrow(1, told_, count).clone();
    told_ += count;
    all_.let_go();
    return rows;
  }

 private:
  static int64_t first_row(double place) { return static_cast<int64_t>(std::floor(place)); }
  static int64_t last_row(double place) { return static_cast<int64_t>(std::floor(place)) + 1; }
  int64_t voxels_of_row() const {
    int64_t voxels = 1;
    for (std::size_t d = 0; d < places_.size(); ++d)
      if (d != outer_) voxels *= std::ssize(places_[d].from);
    return voxels;
  }
  int64_t rows_at_once() const { return std::max<int64_t>(1, kAtOnce / voxels_of_row()); }

  /// The result of places `begin` to `end` along the rows, in the file's order of axes.
  at::Tensor part(int64_t begin, int64_t end) const {
    std::vector<AxisPlaces> places = places_;
    const std::vector<double>& all = places_[outer_].from;
    std::vector<double>& rows = places[outer_].from;
    rows.assign(all.begin() + begin, all.begin() + end);
    for (double& place : rows) place -= static_cast<double>(first_);
    if (grid_.are_labels) {
      std::vector<int64_t> order{0};
      for (const AxisPlaces& own : places) order.push_back(own.axis + 1);
      at::Tensor labels = kept_.permute(order);
      for (std::size_t d = places.size(); d-- > 0;)
        labels = nearest_along(labels, static_cast<int64_t>(d) + 1, places[d]);
      return labels;
    }
    const at::Tensor values = kept_.to(at::kFloat);
    if (!grid_.finish) return sampled(values, places);
    return finished(values, places);
  }
  static at::Tensor sampled(const at::Tensor& values, const std::vector<AxisPlaces>& places) {
    return data::spatial::sample_along_axes(values, places, "near", false, at::kFloat);
  }
  /// Finishes what is interpolated, some lines at a time, as it may have many channels.
  at::Tensor finished(const at::Tensor& scores, const std::vector<AxisPlaces>& places) const {
    const std::size_t split = outer_ == 0 ? 1 : 0;
    int64_t line = scores.size(0);
    for (std::size_t d = 0; d < places.size(); ++d)
      if (d != split) line *= std::ssize(places[d].from);
    const auto lines = std::ssize(places[split].from);
    const int64_t some = std::max<int64_t>(1, kAtOnce / line);
    std::vector<at::Tensor> parts;
    for (int64_t begin = 0; begin < lines; begin += some) {
      std::vector<AxisPlaces> own = places;
      const std::vector<double>& all = places[split].from;
      own[split].from.assign(all.begin() + begin, all.begin() + std::min(begin + some, lines));
      at::Tensor labels = ops::finish(sampled(scores, own).unsqueeze(0), {}, *grid_.finish)[0];
      for (std::size_t d = 0; d < own.size(); ++d) clear_outside(labels, scores, d, own[d]);
      parts.push_back(labels);
    }
    return parts.size() == 1 ? parts[0] : at::cat(parts, static_cast<int64_t>(split) + 1);
  }
  static void clear_outside(at::Tensor& labels,
                            const at::Tensor& scores,
                            std::size_t d,
                            const AxisPlaces& places) {
    const auto most = static_cast<double>(scores.size(places.axis + 1)) - 0.5;
    for (int64_t i = 0; i < std::ssize(places.from); ++i) {
      const double place = places.from[static_cast<std::size_t>(i)];
      if (place < -0.5 || place > most) labels.select(static_cast<int64_t>(d) + 1, i).zero_();
    }
  }

  /// Keeps rows until the last one where they do not come in the file's order.
  at::Tensor keep(const at::Tensor& made) {
    if (outer_ == 0 && !is_reversed_) return made;
    if (!all_.rows.defined()) {
      std::vector<int64_t> shape = grid_.to;
      shape.insert(shape.begin(), made.size(0));
      all_ = ops::KeptRows(shape, made.scalar_type(), grid_.folder);
    }
    const auto dim = static_cast<int64_t>(outer_) + 1;
    const int64_t count = made.size(dim),
                  begin = is_reversed_ ? grid_.to[outer_] - given_ - count : given_;
    all_.rows.narrow(dim, begin, count).copy_(is_reversed_ ? made.flip({dim}) : made);
    all_.let_go();
    return {};
  }

  const ToFileGrid grid_;
  std::vector<AxisPlaces> places_;  // for the file's axes; along the rows ascending
  std::size_t outer_ = 0;           // the file's axis that the rows follow
  bool is_reversed_ = false;
  at::Tensor kept_;
  int64_t first_ = 0, given_ = 0, told_ = 0;  // rows: kept, of the result, of `all_`
  ops::KeptRows all_;
};

/// Rows whose axes are turned against those of the file.
class Turned final : public ops::RowStep {
 public:
  Turned(const ToFileGrid& grid, at::Tensor matrix) : grid_(grid), matrix_(std::move(matrix)) {}

  at::Tensor add(const at::Tensor& rows) override {
    if (!all_.rows.defined()) {
      std::vector<int64_t> shape = grid_.from;
      shape.insert(shape.begin(), rows.size(0));
      all_ = ops::KeptRows(shape, grid_.are_labels ? at::kInt : at::kFloat, grid_.folder);
    }
    all_.rows.narrow(1, taken_, rows.size(1)).copy_(rows);
    all_.let_go();
    taken_ += rows.size(1);
    return {};
  }
  at::Tensor rest() override {
    std::vector<int64_t> size = grid_.to;
    const int64_t row =
        all_.rows.size(0) *
        std::accumulate(size.begin() + 1, size.end(), int64_t{1}, std::multiplies{});
    size[0] = std::min(std::max<int64_t>(1, kAtOnce / row), grid_.to[0] - given_);
    if (size[0] == 0) return {};
    const at::Tensor here = matrix_.clone();
    here.select(1, -1).add_(matrix_.select(1, 0), static_cast<double>(given_));
    given_ += size[0];
    const auto sample = [&](const at::Tensor& values, Between between) {
      return data::spatial::sample_at_matrix(values, here, size, between, "near", false);
    };
    if (grid_.are_labels) return sample(all_.rows, Between::nearest_even).to(at::kInt);
    at::Tensor values = sample(all_.rows, Between::linear);
    if (grid_.finish) {
      std::vector<int64_t> shape = grid_.from;
      shape.insert(shape.begin(), 1);
      const std::vector<int64_t> one(shape.size(), 1);
      const at::Tensor inside = at::ones(one, at::kFloat).expand(shape);
      values = ops::finish(values.unsqueeze(0), {}, *grid_.finish)[0];
      values.masked_fill_(sample(inside, Between::nearest_even).eq(0), 0);
    }
    all_.let_go();
    return values;
  }

 private:
  const ToFileGrid grid_;
  const at::Tensor matrix_;
  ops::KeptRows all_;
  int64_t taken_ = 0, given_ = 0;
};

}  // namespace

std::unique_ptr<ops::RowStep> ToFileGrid::rows() const {
  if (!given.has_affine() || !file.has_affine())
    throw DataError("the file does not say where its voxels lie; leave predict.original_grid out");
  const at::Tensor matrix = data::spatial::voxels_between(given, file, to.size());
  std::vector<AxisPlaces> places = data::spatial::places_along_axes(matrix, to);
  if (places.empty()) return std::make_unique<Turned>(*this, matrix);
  for (AxisPlaces& own : places)
    for (double& place : own.from) place = data::spatial::snapped(place);
  if (coarse_from > 0 && to.size() == 3) {
    const auto own = coarse_axis(learned_spacing, coarse_from),
               other = coarse_axis(file.spacing_um, coarse_from);
    for (int64_t d = 0; d < 3; ++d) {
      AxisPlaces& axis = places[static_cast<std::size_t>(d)];
      if (own ? axis.axis == *own : other == d) axis.between = Between::nearest_later;
    }
  }
  return std::make_unique<AlongAxes>(*this, std::move(places));
}

at::Tensor all_of(ops::RowStep& step, const at::Tensor& rows) {
  std::vector<at::Tensor> all;
  if (at::Tensor made = step.add(rows); made.defined()) all.push_back(made);
  while (true) {
    at::Tensor made = step.rest();
    if (!made.defined()) break;
    all.push_back(made);
  }
  return all.size() == 1 ? all[0] : at::cat(all, 1);
}

}  // namespace cytra::inference
