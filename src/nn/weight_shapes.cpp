#include "nn/weight_shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace cytra::nn {

using config::Node;

WeightShapes::WeightShapes(const std::string& path,
                           const io::TensorViews& tensors,
                           std::string front,
                           const char* whose)
    : path_(path), tensors_(tensors), front_(std::move(front)), whose_(whose) {}

int64_t WeightShapes::size(const std::string& name, std::size_t dimension) const {
  const auto found = tensors_.find(front_ + name);
  const bool is_missing = found == tensors_.end();
  if (is_missing || found->second.shape.size() <= dimension || found->second.shape[dimension] < 1)
    throw DataError("{}: not weights of {}: '{}' is {}",
                    path_,
                    whose_,
                    name,
                    is_missing ? "missing" : "of another shape");
  return found->second.shape[dimension];
}

int64_t WeightShapes::count(const std::string& pattern) const {
  int64_t n = 0;
  while (has(fmt::format(fmt::runtime(pattern), n))) ++n;
  return n;
}

Node sam_encoder_options(const WeightShapes& weights, const std::string& name, bool are_resampled) {
  const std::string block = name + "blocks.0.";
  const int64_t features = weights.size(name + "patch_embed.proj.weight", 0);
  const int64_t patch = weights.size(name + "patch_embed.proj.weight", 3);
  const int64_t side = weights.size(name + "pos_embed", 1);
  const int64_t depth = weights.count(name + "blocks.{}.norm1.weight");
  std::vector<int64_t> reaches, whole;
  for (int64_t i = 0; i < depth; ++i)
    reaches.push_back((weights.size(fmt::format("{}blocks.{}.attn.rel_pos_h", name, i), 0) + 1) /
                      2);
  int64_t window = side, whole_side = are_resampled ? 1 : side;
  for (const int64_t reach : reaches) {
    window = std::min(window, reach);
    if (are_resampled) whole_side = std::max(whole_side, reach);
  }
  for (int64_t i = 0; i < depth; ++i)
    if (reaches[static_cast<std::size_t>(i)] == whole_side) whole.push_back(i);
  const int64_t hidden = weights.size(block + "mlp.lin1.weight", 0);
  Node node = Node::make_map();
  for (const auto& [key, value] :
       {std::pair("img_size", side * patch),
        std::pair("patch_size", patch),
        std::pair("embed_dim", features),
        std::pair("depth", depth),
        std::pair("num_heads", features / weights.size(block + "attn.rel_pos_h", 1)),
        std::pair("out_chans", weights.size(name + "neck.0.weight", 0)),
        std::pair("window_size", window)})
    node.set(key, Node::make_integer(value));
  node.set("mlp_ratio",
           Node::make_real(static_cast<double>(hidden) / static_cast<double>(features)));
  node.set("global_attn_indexes", Node::make_list(whole));
  if (are_resampled) node.set("pretrained_side", Node::make_integer(whole_side));
  return node;
}

}  // namespace cytra::nn
