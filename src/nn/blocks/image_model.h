#pragma once
// What networks from images to images of the same sides have in common.
#include "nn/blocks/layer.h"
#include "nn/model.h"

namespace cytra::nn {

struct ImageModelOptions : ModelOptions {
  int64_t spatial_dims = 2, in_channels = 1, out_channels = 1;
  void visit(auto& v) {
    v("spatial_dims", spatial_dims, "2 or 3", 2, 3);
    v("in_channels", in_channels, "image channels C", 1, 1e5);
    v("out_channels", out_channels, "logits K", 1, 1e5);
    ModelOptions::visit(v);
  }
  /// `side` for each dimension.
  Sizes each(int64_t side) const { return Sizes(static_cast<std::size_t>(spatial_dims), side); }
};

struct ImageModel : Model {
  explicit ImageModel(const ImageModelOptions& options) : Model(options), shape_(options) {}
  int64_t in_channels() const override { return shape_.in_channels; }
  int64_t out_channels() const override { return shape_.out_channels; }
  int64_t spatial_dims() const override { return shape_.spatial_dims; }

 private:
  ImageModelOptions shape_;
};

/// What networks that take images of one size alone have in common.
struct FixedSizeModel : Model {
  FixedSizeModel(const ModelOptions& options,
                 Sizes sides,
                 int64_t in_channels,
                 int64_t out_channels)
      : Model(options), sides_(std::move(sides)), channels_(in_channels, out_channels) {}
  std::vector<int64_t> divisor() const override { return Sizes(sides_.size(), 1); }
  std::vector<int64_t> fixed_size() const override { return sides_; }
  int64_t in_channels() const override { return channels_.first; }
  int64_t out_channels() const override { return channels_.second; }
  int64_t spatial_dims() const override { return std::ssize(sides_); }

 private:
  Sizes sides_;
  std::pair<int64_t, int64_t> channels_;
};

}  // namespace cytra::nn
