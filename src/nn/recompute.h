#pragma once
// Include only from .cpp files, as nn/model.h.
#include <functional>
#include <tuple>

#include "nn/call.h"

namespace cytra::nn {

/// `first()`, but autograd keeps none of the tensors that the operations in it save: when the
/// backward pass asks for one, `again()` computes them anew, in the random, autocast and training
/// state and with the buffers of the first time, all of which are put back after it. The graph is
/// that of first(), so gradients are bit-equal where the operations are. Without gradients, and
/// inside of another checkpoint, it is first() alone. `again` must hold the block alive.
/// Throws, in the backward pass: std::logic_error when again() saves another number of tensors.
/// Source: torch.utils.checkpoint with use_reentrant=False; arXiv:1604.06174.
at::Tensor checkpoint(torch::nn::Module& block,
                      const std::function<at::Tensor()>& first,
                      std::function<at::Tensor()> again);

/// An input for a second run: it shares the memory, but not the autograd history.
inline at::Tensor without_history(const at::Tensor& input) {
  return input.defined() ? input.detach().requires_grad_(input.requires_grad()) : input;
}

/// checkpoint() of call(*block, inputs...). The block must not change its inputs in place.
template <class Block, class... Inputs>
at::Tensor checkpoint(const std::shared_ptr<Block>& block, const Inputs&... inputs) {
  return checkpoint(
      *block,
      [&] { return call(*block, inputs...); },
      [block, kept = std::make_tuple(without_history(inputs)...)] {
        return std::apply([&](const auto&... input) { return block->forward(input...); }, kept);
      });
}

}  // namespace cytra::nn
