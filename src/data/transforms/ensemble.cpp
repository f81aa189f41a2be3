// MeanEnsembled, VoteEnsembled: combine several predictions. Source: monai.transforms, the same
// names.

#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct EnsembleOptions : KeyOptions {
  std::string output_key;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("output_key", output_key, "key of the result", config::required);
  }
  /// The stacked images, (E,C,...). Throws: DataError for images of several sizes.
  at::Tensor stacked(Sample& sample) const {
    std::vector<at::Tensor> images;
    for_each(sample, [&](const at::Tensor& image) {
      if (!images.empty() && images[0].sizes() != image.sizes())
        throw DataError("another size than the first key, expected the same");
      images.push_back(image);
      return image;
    });
    if (images.empty()) sample.at(keys.front());  // throws
    return at::stack(images);
  }
  void put(Sample& sample, const at::Tensor& image) const {
    sample.tensors[output_key] = image;
    for (const std::string& key : keys) {  // of the first there is
      const auto place = sample.geometries.find(key);
      if (place == sample.geometries.end()) continue;
      sample.geometries[output_key] = io::Geometry(place->second);
      break;
    }
  }
};

struct MeanEnsembled : EnsembleOptions {
  std::vector<std::vector<double>> weights;
  void visit(auto& v) {
    EnsembleOptions::visit(v);
    v("weights",
      weights,
      "weights of each key, or of each key's channels: [[1, 2], [2, 1]]; null: equal");
  }
  void check() const {
    for (const std::vector<double>& one : weights) {
      if (one.empty() || one.size() != weights[0].size() || weights.size() != keys.size())
        throw ConfigError("weights: expected one for each key, or equally many for its channels");
    }
  }

  void operator()(Sample& sample) const {
    at::Tensor images = stacked(sample);
    if (!weights.empty()) images = images * weights_for(images, sample.id);
    put(sample, images.mean(0));
  }

 private:
  /// The weights, (E,1 or C,1,...), of mean 1.
  at::Tensor weights_for(const at::Tensor& images, const std::string& id) const {
    std::vector<at::Tensor> rows;
    for (const std::vector<double>& one : weights) rows.push_back(at::tensor(one));
    at::Tensor factors = at::stack(rows).to(images.scalar_type());
    if (factors.size(0) != images.size(0) ||
        (factors.size(1) != 1 && factors.size(1) != images.size(1))) {
      throw DataError("{}: {} images of {} channels, expected weights for each",
                      id,
                      images.size(0),
                      images.size(1));
    }
    factors = factors / factors.mean(0, /*keepdim=*/true);
    while (factors.dim() < images.dim()) factors = factors.unsqueeze(-1);
    return factors;
  }
};
CYTRA_REGISTER(Transform, PerSample<MeanEnsembled>, "MeanEnsembled");

struct VoteEnsembled : EnsembleOptions {
  std::optional<int64_t> num_classes;
  void visit(auto& v) {
    EnsembleOptions::visit(v);
    v("num_classes",
      num_classes,
      "number of classes; the most frequent class wins, the smallest of equally frequent ones; "
      "null: the images are masks",
      1,
      65536);
  }

  void operator()(Sample& sample) const {
    const at::Tensor images = stacked(sample);
    put(sample, num_classes ? most_frequent(images) : images.mean(0).round());
  }

 private:
  at::Tensor most_frequent(const at::Tensor& images) const {
    if (images.size(1) > 1)
      throw DataError(
          "VoteEnsembled: several channels, expected one of class numbers, or masks "
          "and no num_classes");
    at::Tensor winner = at::zeros_like(images[0]), most = at::zeros_like(images[0]);
    for (int64_t k = 0; k < *num_classes; ++k) {
      const at::Tensor votes = images.eq(k).sum(0).to(most.scalar_type());
      winner.masked_fill_(votes.gt(most), static_cast<double>(k));
      most = at::maximum(most, votes);
    }
    return winner;
  }
};
CYTRA_REGISTER(Transform, PerSample<VoteEnsembled>, "VoteEnsembled");

}  // namespace
}  // namespace cytra::data
