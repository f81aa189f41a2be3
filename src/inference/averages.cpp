#include "inference/averages.h"

#include <numeric>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
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
      throw DataError(fmt::format(
          "predictions that are averaged have {} and {} outputs", sums_.size(), outputs.size()));
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (outputs[i].sizes() != sums_[i].sizes()) {
        throw DataError(fmt::format("predictions that are averaged are ({}) and ({})",
                                    fmt::join(sums_[i].sizes(), ","),
                                    fmt::join(outputs[i].sizes(), ",")));
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

}  // namespace

Forward mean_of(std::vector<Forward> members) {
  if (members.size() == 1) return std::move(members[0]);
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
  std::vector<std::function<void(c10::Device)>> places;
  std::string fingerprints;
  for (const LoadedModel& model : models) {
    forwards.push_back(model.forward);
    places.push_back(model.place);
    fingerprints += model.fingerprint;
    for (std::size_t d = 0; d < mean.divisor.size(); ++d)
      mean.divisor[d] = std::lcm(mean.divisor[d], model.divisor.at(d));
  }
  mean.path = fmt::format("{} and {} more", mean.path, models.size() - 1);
  mean.network = nullptr;
  mean.forward = mean_of(std::move(forwards));
  mean.place = [places = std::move(places)](c10::Device device) {
    for (const auto& place : places) place(device);
  };
  mean.fingerprint = io::fingerprint(fingerprints);
  return mean;
}

}  // namespace cytra::inference
