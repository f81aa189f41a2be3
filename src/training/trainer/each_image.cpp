#include "training/trainer/each_image.h"

#include <ATen/ATen.h>

#include "data/loader/batch.h"
#include "report/findings.h"

namespace cytra::training {

bool EachImage::tells(Task& task) {
  return !task.findings().all.metrics.empty();
}

EachImage::Counted EachImage::taken() {
  Counted counted;
  for (const Tensor& sum : task_.sums()) {
    counted.sums.push_back(sum.clone());
    sum.zero_();
  }
  task_.gather([&](const Tensor& rows) {
    counted.lists.push_back({rows.clone()});
    return rows.slice(0, 0, 0);
  });
  return counted;
}

void EachImage::put(const Counted& counted) {
  const std::vector<Tensor> sums = task_.sums();
  for (std::size_t s = 0; s < counted.sums.size(); ++s) sums[s].copy_(counted.sums[s]);
  std::size_t list = 0;
  task_.gather([&](const Tensor& rows) {
    return counted.lists.empty() ? rows : at::cat(counted.lists[list++]);
  });
}

void EachImage::take(const data::Batch& batch) {
  constexpr std::size_t kMostImages = 1000;
  constexpr int64_t kMostNumbers = 4096;  // more have confusions of many classes
  Counted one = taken();
  int64_t numbers = 0;
  for (const Tensor& sum : one.sums) numbers += sum.numel();
  if (all_.sums.empty() && all_.lists.empty()) {
    all_.lists.resize(one.lists.size());
    for (const Tensor& sum : one.sums) all_.sums.push_back(at::zeros_like(sum));
  }
  for (std::size_t s = 0; s < one.sums.size(); ++s) all_.sums[s].add_(one.sums[s]);
  for (std::size_t l = 0; l < one.lists.size(); ++l) all_.lists[l].push_back(one.lists[l].front());
  if (batch.ids.size() != 1 || images_.size() == kMostImages || numbers > kMostNumbers) return;
  one.image = batch.ids.front();
  images_.push_back(std::move(one));
}

report::Findings EachImage::findings() {
  report::Findings found = task_.findings();
  const Counted total = taken();
  for (const Counted& one : images_) {
    put(one);
    found.images.push_back(task_.findings().all);
    found.images.back().name = one.image;
  }
  put(total);
  return found;
}

}  // namespace cytra::training
