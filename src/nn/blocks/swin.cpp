// Source: arXiv:2103.14030; parameters and results of monai.networks.nets.swin_unetr. Images are
// (N,[D,]H,W,C) inside.
#include "nn/blocks/swin.h"

#include <functional>
#include <numeric>

#include <ATen/ATen.h>

#include "nn/dropout.h"

namespace cytra::nn {
namespace {

constexpr double kFar = -100;  // added to the score of two voxels that are no neighbours

int64_t voxels(const Sizes& sides) {
  return std::accumulate(sides.begin(), sides.end(), int64_t{1}, std::multiplies<>());
}

Sizes negated(Sizes sizes) {
  for (int64_t& size : sizes) size = -size;
  return sizes;
}

/// 1, 2, ..., the image's spatial dimensions.
Sizes spatial(const Sizes& sides) {
  Sizes dims(sides.size());
  std::iota(dims.begin(), dims.end(), 1);
  return dims;
}

/// (N,[D,]H,W,C) -> (N * windows, voxels of a window, C)
at::Tensor into_windows(const at::Tensor& x, const Sizes& window) {
  Sizes split{x.size(0)}, order{0};
  for (std::size_t d = 0; d < window.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    split.insert(split.end(), {x.size(dim + 1) / window[d], window[d]});
    order.push_back(2 * dim + 1);
  }
  for (std::size_t d = 0; d < window.size(); ++d) order.push_back(2 * static_cast<int64_t>(d) + 2);
  split.push_back(x.size(-1));
  order.push_back(std::ssize(split) - 1);
  return x.reshape(split).permute(order).reshape({-1, voxels(window), x.size(-1)});
}

/// The other way, to an image of `sides`.
at::Tensor from_windows(const at::Tensor& windows, const Sizes& window, const Sizes& sides) {
  const auto dims = std::ssize(window);
  Sizes split{-1}, order{0}, shape{-1};
  for (std::size_t d = 0; d < window.size(); ++d) {
    split.push_back(sides[d] / window[d]);
    order.insert(order.end(), {static_cast<int64_t>(d) + 1, static_cast<int64_t>(d) + 1 + dims});
    shape.push_back(sides[d]);
  }
  split.insert(split.end(), window.begin(), window.end());
  for (Sizes* sizes : {&split, &shape}) sizes->push_back(windows.size(-1));
  order.push_back(2 * dims + 1);
  return windows.reshape(split).permute(order).reshape(shape);
}

/// Which row of a table of (2w - 1)^dims holds the bias of two voxels of a window: (voxels,
/// voxels).
at::Tensor relative_positions(const Sizes& window) {
  at::Tensor rows = at::zeros({1, 1}, at::kLong);
  for (const int64_t side : window) {
    const at::Tensor place = at::arange(side, at::kLong);
    const at::Tensor distance = place.unsqueeze(1) - place + side - 1;  // (side, side)
    rows = rows.unsqueeze(1).unsqueeze(3) * (2 * side - 1) + distance.unsqueeze(0).unsqueeze(2);
    rows = rows.flatten(2).flatten(0, 1);
  }
  return rows;
}

}  // namespace

/// Self-attention in a window, with a bias for each distance.
struct SwinStage::Attention : torch::nn::Module {
  Attention(int64_t features, const SwinOptions& options)
      : heads_(options.heads), drop_(options.drop), attention_drop_(options.attention_drop) {
    int64_t rows = 1;
    for (const int64_t side : options.window) rows *= 2 * side - 1;
    table_ = register_embedding(*this, "relative_position_bias_table", {rows, heads_});
    index_ = register_buffer("relative_position_index", relative_positions(options.window));
    qkv_ = put<Linear>(*this, "qkv", features, 3 * features, options.qkv_bias);
    proj_ = put<Linear>(*this, "proj", features, features);
  }
  /// (N * windows, voxels, C)
  at::Tensor forward(const at::Tensor& x, const at::Tensor& far) {
    const int64_t count = x.size(1);
    // A window cut short by the image uses the table's rows of the first voxels, as in MONAI.
    const at::Tensor rows = index_.slice(0, 0, count).slice(1, 0, count).flatten();
    at::Tensor bias =
        table_.index_select(0, rows).view({count, count, heads_}).permute({2, 0, 1}).unsqueeze(0);
    if (far.defined()) bias = bias + far.unsqueeze(1);  // (windows, heads, voxels, voxels)
    // Windows of one image count as heads, so that all of a batch share the bias.
    const int64_t windows = bias.size(0);
    const auto split = [&](const at::Tensor& part) {
      return part.unflatten(-1, {heads_, -1})
          .transpose(1, 2)
          .reshape({-1, windows * heads_, count, part.size(-1) / heads_});
    };
    const auto parts = call(*qkv_, x).chunk(3, -1);
    const at::Tensor attended = at::scaled_dot_product_attention(
                                    split(parts[0]),
                                    split(parts[1]),
                                    split(parts[2]),
                                    bias.flatten(0, 1).unsqueeze(0).to(parts[0].scalar_type()),
                                    drops(attention_drop_, is_training()) ? attention_drop_ : 0)
                                    .reshape({-1, heads_, count, x.size(2) / heads_})
                                    .transpose(1, 2)
                                    .flatten(2);
    const at::Tensor y = call(*proj_, attended);
    return nn::dropout(y, drop_, is_training());
  }

 private:
  int64_t heads_;
  double drop_, attention_drop_;
  at::Tensor table_, index_;
  std::shared_ptr<Linear> qkv_, proj_;
};

struct SwinStage::Block : torch::nn::Module {
  Block(int64_t features, const SwinOptions& options, double path_drop)
      : path_drop_(path_drop),
        norm1_(put<LayerNorm>(*this, "norm1", features)),
        attn_(put<Attention>(*this, "attn", features, options)),
        norm2_(put<LayerNorm>(*this, "norm2", features)),
        mlp_(put<Mlp>(*this,
                      "mlp",
                      kMonaiBlock,
                      features,
                      static_cast<int64_t>(static_cast<double>(features) * options.mlp_ratio),
                      options.drop)) {}
  at::Tensor forward(const at::Tensor& x, const Windows* windows) {
    const at::Tensor y = x + passed(attended(call(*norm1_, x), *windows));
    return y + passed(call(*mlp_, call(*norm2_, y)));
  }

 private:
  at::Tensor attended(at::Tensor x, const Windows& w) {
    const bool is_padded = w.padded != w.sides;
    if (is_padded) {
      Sizes after{0, 0};
      for (std::size_t d = w.sides.size(); d-- > 0;)
        after.insert(after.end(), {0, w.padded[d] - w.sides[d]});
      x = at::constant_pad_nd(x, after);
    }
    if (w.is_shifted) x = x.roll(negated(w.shift), spatial(w.shift));
    x = from_windows(call(*attn_, into_windows(x, w.window), w.far), w.window, w.padded);
    if (w.is_shifted) x = x.roll(w.shift, spatial(w.shift));
    for (std::size_t d = 0; is_padded && d < w.sides.size(); ++d)
      x = x.narrow(static_cast<int64_t>(d) + 1, 0, w.sides[d]);
    return x;
  }
  /// Drops the block for some images in training: stochastic depth, arXiv:1603.09382.
  at::Tensor passed(const at::Tensor& x) const {
    if (path_drop_ == 0 || !is_training()) return x;
    Sizes shape(static_cast<std::size_t>(x.dim()), 1);
    shape[0] = x.size(0);
    return x * at::empty(shape, x.options()).bernoulli_(1 - path_drop_) / (1 - path_drop_);
  }
  double path_drop_;
  std::shared_ptr<LayerNorm> norm1_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<LayerNorm> norm2_;
  std::shared_ptr<Mlp> mlp_;
};

SwinStage::SwinStage(int64_t features, const SwinOptions& options)
    : options_(options),
      blocks_(register_list(*this, "blocks", std::ssize(options.path_drop), [&](int64_t i) {
        return std::make_shared<Block>(
            features, options, options.path_drop[static_cast<std::size_t>(i)]);
      })) {
  const int64_t neighbours = features << options.window.size();
  const auto downsample = put<torch::nn::Module>(*this, "downsample");
  reduction_ = downsample->register_module(
      "reduction", std::make_shared<Linear>(neighbours, 2 * features, false));
  norm_ = downsample->register_module("norm", std::make_shared<LayerNorm>(neighbours));
}

const SwinStage::Windows& SwinStage::windows_of(const at::Tensor& x, bool is_shifted) {
  const Sizes sides = x.sizes().slice(1, options_.window.size()).vec();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [place, is_new] = windows_.try_emplace({sides, is_shifted});
  Windows& found = place->second;
  if (is_new) {
    found.sides = found.padded = sides;
    found.window = options_.window;
    found.shift.resize(sides.size());
    at::Tensor region = at::zeros({1}, at::kLong);  // of each voxel: shifts make neighbours of them
    for (std::size_t d = 0; d < sides.size(); ++d) {
      int64_t& window = found.window[d];
      if (is_shifted && sides[d] > window) found.shift[d] = window / 2;
      window = std::min(window, sides[d]);
      found.padded[d] = (sides[d] + window - 1) / window * window;
      found.is_shifted = found.is_shifted || found.shift[d] > 0;
      const at::Tensor at_place = at::arange(found.padded[d], at::kLong);
      const at::Tensor part = at_place.ge(found.padded[d] - window).to(at::kLong) +
                              at_place.ge(found.padded[d] - found.shift[d]).to(at::kLong);
      region = region.unsqueeze(-1) * 3 + part;
    }
    if (found.is_shifted) {
      const at::Tensor of_window = into_windows(region.unsqueeze(-1), found.window).squeeze(-1);
      found.far = of_window.unsqueeze(1).ne(of_window.unsqueeze(2)).to(at::kFloat) * kFar;
    }
  }
  if (found.far.defined() && found.far.device() != x.device()) found.far = found.far.to(x.device());
  return found;
}

at::Tensor SwinStage::forward(const at::Tensor& image, bool recompute) {
  at::Tensor x = image.movedim(1, -1).contiguous();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Windows* const windows = &windows_of(x, i % 2 == 1);
    if (recompute) {
      const auto& block = blocks_[i];
      const at::Tensor again = without_history(x);
      x = checkpoint(
          *block,
          [&] { return call(*block, x, windows); },
          [block, again, windows] { return block->forward(again, windows); });
    } else {
      x = call(*blocks_[i], x, windows);
    }
  }
  const std::size_t dims = options_.window.size();
  const int64_t count = int64_t{1} << dims;
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < count; ++i) {
    // Bit d of an offset moves along dimension d. In 3D the first version turns two of them round.
    int64_t offset = i;
    if (dims == 3 && options_.merging == "merging") {
      constexpr int64_t kOrder[] = {0, 1, 2, 4, 3, 5, 6, 7};
      offset = kOrder[i];
    } else if (dims == 3) {
      constexpr int64_t kOrder[] = {0, 4, 2, 6, 1, 5, 3, 7};
      offset = kOrder[i];
    }
    at::Tensor part = x;
    for (std::size_t d = 0; d < dims; ++d)
      part = part.slice(static_cast<int64_t>(d) + 1, offset >> d & 1, std::nullopt, 2);
    parts.push_back(part);
  }
  return call(*reduction_, call(*norm_, at::cat(parts, -1))).movedim(-1, 1);
}

}  // namespace cytra::nn
