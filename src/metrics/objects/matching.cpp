#include "metrics/objects/matching.h"

#include <limits>
#include <numeric>
#include <unordered_map>

#include <ATen/ATen.h>

namespace cytra::metrics {
namespace {

/// The objects, numbered from 0 in the order of their first voxels, and their sizes in voxels.
struct ObjectSizes {
  std::unordered_map<int64_t, int64_t> index;
  std::vector<int64_t> voxels;
  int64_t add(int64_t label, int64_t count) {
    const auto [place, is_new] = index.emplace(label, std::ssize(voxels));
    if (is_new) voxels.push_back(0);
    voxels[static_cast<std::size_t>(place->second)] += count;
    return place->second;
  }
};

/// Groups of pairs that compete for objects: by union-find over true objects, then predicted ones.
class Rivals {
 public:
  explicit Rivals(int64_t objects) : parents_(static_cast<std::size_t>(objects)) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  int64_t root(int64_t object) {
    int64_t* const parents = parents_.data();
    while (parents[object] != object) object = parents[object] = parents[parents[object]];
    return object;
  }
  void join(int64_t a, int64_t b) { parents_[static_cast<std::size_t>(root(a))] = root(b); }

 private:
  std::vector<int64_t> parents_;
};

/// Assigns each row (there are at most as many as columns) a column so that the gains' sum is the
/// largest; column by row. Source: the Hungarian method with potentials, Kuhn 1955.
std::vector<std::size_t> assign(const std::vector<std::vector<double>>& gains) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  const std::size_t rows = gains.size(), columns = gains[0].size();
  std::vector<double> row_price(rows + 1, 0), column_price(columns + 1, 0);
  std::vector<std::size_t> row_of(columns + 1, rows);  // `rows`: free; the last column is a start
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<double> least(columns, kFar);
    std::vector<std::size_t> before(columns, columns);
    std::vector<bool> is_done(columns + 1, false);
    std::size_t column = columns;
    row_of[column] = row;
    do {  // the cheapest way from this row to a free column
      is_done[column] = true;
      const std::size_t from = row_of[column];
      double step = kFar;
      std::size_t next = columns;
      for (std::size_t c = 0; c < columns; ++c) {
        if (is_done[c]) continue;
        const double cost = -gains[from][c] - row_price[from] - column_price[c];
        if (cost < least[c]) {
          least[c] = cost;
          before[c] = column;
        }
        if (least[c] < step) {
          step = least[c];
          next = c;
        }
      }
      for (std::size_t c = 0; c <= columns; ++c) {
        if (is_done[c]) {
          row_price[row_of[c]] += step;
          column_price[c] -= step;
        } else if (c < columns) {
          least[c] -= step;
        }
      }
      column = next;
    } while (row_of[column] != rows);
    while (column != columns) {
      row_of[column] = row_of[before[column]];
      column = before[column];
    }
  }
  std::vector<std::size_t> column_of(rows);
  for (std::size_t c = 0; c < columns; ++c) {
    if (row_of[c] < rows) column_of[row_of[c]] = c;
  }
  return column_of;
}

using Pairs = std::vector<const ObjectOverlaps::Pair*>;

/// The best pairs out of those that compete with each other.
Matches best_of(const Pairs& pairs) {
  std::unordered_map<int64_t, std::size_t> rows, columns;
  for (const auto* pair : pairs) {
    rows.emplace(pair->truth, rows.size());
    columns.emplace(pair->prediction, columns.size());
  }
  const bool is_turned = rows.size() > columns.size();
  if (is_turned) std::swap(rows, columns);
  std::vector<std::vector<double>> iou(rows.size(), std::vector<double>(columns.size(), 0)),
      gains = iou;
  for (const auto* pair : pairs) {
    const std::size_t row = rows.at(is_turned ? pair->prediction : pair->truth);
    const std::size_t column = columns.at(is_turned ? pair->truth : pair->prediction);
    iou[row][column] = pair->iou;
    // A pair more is worth more than all IoUs.
    gains[row][column] = 1 + pair->iou / (2 * static_cast<double>(rows.size()));
  }
  Matches matches;
  const std::vector<std::size_t> column_of = assign(gains);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double value = iou[row][column_of[row]];
    matches.pairs += value > 0 ? 1 : 0;
    matches.iou_sum += value;
  }
  return matches;
}

}  // namespace

ObjectOverlaps overlaps_of(const at::Tensor& prediction, const at::Tensor& truth) {
  const at::Tensor predicted = prediction.to(at::kCPU, at::kLong).contiguous(),
                   real = truth.to(at::kCPU, at::kLong).contiguous();
  const int64_t *p = predicted.const_data_ptr<int64_t>(), *t = real.const_data_ptr<int64_t>();
  ObjectSizes true_objects, predicted_objects;
  std::vector<std::unordered_map<int64_t, int64_t>> shared;  // voxels by prediction, of each truth
  for (int64_t i = 0, end = 0; i < real.numel(); i = end) {  // a run of one pair at a time
    while (end < real.numel() && p[end] == p[i] && t[end] == t[i]) ++end;
    const int64_t predicted_index = p[i] == 0 ? -1 : predicted_objects.add(p[i], end - i);
    if (t[i] == 0) continue;
    const int64_t true_index = true_objects.add(t[i], end - i);
    shared.resize(true_objects.voxels.size());
    if (predicted_index >= 0)
      shared[static_cast<std::size_t>(true_index)][predicted_index] += end - i;
  }
  ObjectOverlaps overlaps;
  overlaps.true_objects = std::ssize(true_objects.voxels);
  overlaps.predicted_objects = std::ssize(predicted_objects.voxels);
  for (std::size_t truth_index = 0; truth_index < shared.size(); ++truth_index) {
    for (const auto& [prediction_index, voxels] : shared[truth_index]) {
      const int64_t all = true_objects.voxels[truth_index] - voxels +
                          predicted_objects.voxels[static_cast<std::size_t>(prediction_index)];
      overlaps.pairs.push_back({static_cast<int64_t>(truth_index),
                                prediction_index,
                                static_cast<double>(voxels) / static_cast<double>(all)});
    }
  }
  return overlaps;
}

Matches match(const ObjectOverlaps& overlaps, double threshold) {
  Rivals rivals(overlaps.true_objects + overlaps.predicted_objects);
  Pairs good;
  for (const ObjectOverlaps::Pair& pair : overlaps.pairs) {
    if (pair.iou < threshold) continue;
    good.push_back(&pair);
    rivals.join(pair.truth, overlaps.true_objects + pair.prediction);
  }
  std::unordered_map<int64_t, Pairs> groups;
  for (const auto* pair : good) groups[rivals.root(pair->truth)].push_back(pair);
  Matches all;
  for (const auto& [root, group] : groups) {
    const Matches matches = group.size() == 1 ? Matches{1, group[0]->iou} : best_of(group);
    all.pairs += matches.pairs;
    all.iou_sum += matches.iou_sum;
  }
  return all;
}

}  // namespace cytra::metrics
