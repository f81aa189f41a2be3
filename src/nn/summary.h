#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cytra::nn {

struct Model;

/// A module and all that is inside of it.
struct SummaryRow {
  std::string name;  // dotted; empty: the model
  std::string type;
  int64_t depth = 0;  // 0: the model
  int64_t parameters = 0, trainable = 0;
  std::vector<int64_t> in, out;  // shapes of the (first) input and the output; empty: never called
  int64_t flops = 0;             // of the forward pass; a multiply-add is 2
  int64_t kept_bytes = 0;        // for the backward pass, made in here; without checkpointing
  int64_t checkpointed_bytes = 0;  // the same with gradient_checkpointing
};

/// The parts of a model, and the memory and FLOPs of a training step of one image.
struct Summary {
  std::vector<SummaryRow> rows;         // the model, then its modules, parents first
  std::vector<int64_t> shape;           // of the image, (N,C,[D,]H,W)
  bool gradient_checkpointing = false;  // else checkpointed_bytes are 0
  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;  // of Adam's two moments; SGD's momentum takes half of it
  int64_t spared_flops = 0;     // of the forward pass's, by Winograd's convolutions; an estimate
};

/// Runs the model once (with gradient_checkpointing twice) on zeros of `shape`, in training mode
/// and under the autocast of the caller; random generators, buffers, training modes and gradients
/// stay as they are. Modules that the model does not run by call() have no shapes; their FLOPs and
/// memory are those of the module around them. max_depth: 1 for the modules in the model, 2 for
/// those in them, and so on; -1: all. Throws: DataError when the model does not take the shape.
/// Source: lightning's ModelSummary; FLOPs as torch.utils.flop_counter (convolutions, matrix
/// products and attention).
Summary summarize(Model& model, const std::vector<int64_t>& shape, int64_t max_depth);

/// A table, about 120 columns wide at most, and the totals in a line each; no line end at the end.
std::string to_text(const Summary& summary);

}  // namespace cytra::nn
