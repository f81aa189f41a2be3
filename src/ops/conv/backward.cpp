#include "ops/conv/backward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/compute_alone.h"
#include "ops/conv/onednn.h"
#include "ops/conv/shapes.h"
#include "ops/conv/winograd/winograd.h"

namespace cytra::ops::cpu {
namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of input, weight and bias

/// The options of a convolution that is not transposed.
struct Form {
  at::IntArrayRef stride, padding, dilation;
  int64_t groups;
};

constexpr int64_t kMostValues = int64_t{1} << 21;  // of all parts: they are added at the end
constexpr int64_t kFewestPixels = 512;             // of a part: fewer cost less than their adding

/// Parts of one gradient: ranges of samples, or of the output's rows where samples are few. Fewer
/// than two: torch's own way is used.
int64_t count_parts(const at::Tensor& output, const at::Tensor& weight) {
  const at::ScalarType type = weight.scalar_type();
  if (at::in_parallel_region() || output.numel() == 0 || weight.numel() == 0 ||
      output.scalar_type() != type || (type != at::kFloat && type != at::kBFloat16))
    return 0;
  const int64_t samples = output.size(0), pixels = output.numel() / output.size(1),
                threads = at::get_num_threads(),
                most = std::min({threads, kMostValues / weight.numel(), pixels / kFewestPixels});
  if (2 * most <= threads) return 0;  // the wait costs less than threads without work
  return most <= samples ? most : most / samples * samples;
}

at::Tensor weight_grad_in_parts(int64_t parts,
                                const at::Tensor& image,
                                const at::Tensor& output,
                                const at::Tensor& weight,
                                const Form& form) {
  const int64_t samples = output.size(0), rows = output.size(2),
                cuts = std::min(std::max<int64_t>(parts / samples, 1), rows);
  std::vector<int64_t> padding(form.padding.begin(), form.padding.end());
  at::Tensor padded = image.detach();
  if (cuts > 1) {  // the rows beside a part are the image's, those outside are zeros
    std::vector<int64_t> outside(2 * padding.size(), 0);
    outside.end()[-1] = outside.end()[-2] = std::exchange(padding.front(), 0);
    padded = at::constant_pad_nd(padded, outside).contiguous(image.suggest_memory_format());
    parts = samples * cuts;
  }
  const auto part_of = [&](int64_t part) -> std::array<at::Tensor, 2> {
    if (cuts == 1) {
      const int64_t first = samples * part / parts, end = samples * (part + 1) / parts;
      return {padded.narrow(0, first, end - first), output.narrow(0, first, end - first)};
    }
    const int64_t cut = part % cuts, first = rows * cut / cuts, end = rows * (cut + 1) / cuts;
    const int64_t needed =
        (end - first - 1) * form.stride[0] + form.dilation[0] * (weight.size(2) - 1) + 1;
    return {padded.narrow(0, part / cuts, 1).narrow(2, first * form.stride[0], needed),
            output.narrow(0, part / cuts, 1).narrow(2, first, end - first)};
  };
  std::vector<at::Tensor> sums(static_cast<std::size_t>(parts));
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    const at::AutoDispatchBelowADInplaceOrView no_gradients;
    compute_alone();  // oneDNN plans for the threads that there are: more would never come
    for (int64_t part = first; part < last; ++part) {
      const auto [x, dy] = part_of(part);
      std::vector<int64_t> stride = form.stride.vec();
      if (dy.size(2) == 1) stride[0] = 1;  // SafeForm
      sums[static_cast<std::size_t>(part)] = std::get<1>(
          convolution_backward(dy,
                               x,
                               weight,
                               {stride, padding, form.dilation, false, {0}, form.groups},
                               {false, true, false}));
    }
  });
  const at::AutoDispatchBelowADInplaceOrView no_gradients;
  at::Tensor sum = sums[0].to(at::kFloat);
  for (std::size_t i = 1; i < sums.size(); ++i) sum.add_(sums[i]);
  return sum.to(weight.scalar_type());
}

/// An equal convolution that avoids what torch 2.11's oneDNN computes wrong: 1x1 kernels that skip
/// pixels (it crashes with those of one channel), padded sides that are short beside the kernel,
/// and strides to nowhere (it reads memory that nothing was written to, and writes beyond its
/// tensors).
struct SafeForm {
  SafeForm(const at::Tensor& of_image,
           const at::Tensor& output,
           const at::Tensor& weight,
           const Form& form)
      : image(of_image), stride(form.stride.vec()), padding(form.padding.vec()) {
    const std::size_t dims = stride.size();
    const auto extent = [&](std::size_t d) {
      return form.dilation[d] * (weight.size(static_cast<int64_t>(d) + 2) - 1) + 1;
    };
    if (are_all(weight.sizes().slice(2), 1) && are_all(padding, 0)) {
      for (std::size_t d = 0; d < dims; ++d) {
        if (stride[d] == 1) continue;
        image = image.slice(static_cast<int64_t>(d) + 2, 0, std::nullopt, stride[d]);
        stride[d] = 1;
      }
      return;
    }
    bool is_short = false;
    for (std::size_t d = 0; d < dims; ++d)
      is_short |= padding[d] > 0 && image.size(static_cast<int64_t>(d) + 2) < extent(d) + stride[d];
    if (is_short) {
      std::vector<int64_t> around;  // from the last side
      for (std::size_t d = dims; d-- > 0;) around.insert(around.end(), 2, padding[d]);
      image = at::constant_pad_nd(image, around);
      padding.assign(dims, 0);
    }
    for (std::size_t d = 0; d < dims; ++d) {
      const auto axis = static_cast<int64_t>(d) + 2;
      if (output.size(axis) != 1 || stride[d] == 1 || padding[d] > 0) continue;
      image = image.narrow(axis, 0, extent(d));
      stride[d] = 1;
    }
  }
  at::Tensor image;
  std::vector<int64_t> stride, padding;
};

}  // namespace

Tensors conv_gradients(const at::Tensor& grad,
                       const at::Tensor& input,
                       const at::Tensor& given_weight,
                       const ConvOptions& options,
                       std::array<bool, 3> needs) {
  const auto& [stride, padding, dilation, transposed, output_padding, groups, kept] = options;
  if (uses_winograd(input, given_weight, options)) {
    return {needs[0] ? winograd_input_grad(grad, given_weight, padding) : at::Tensor(),
            needs[1] ? winograd_weight_grad(input, grad, given_weight, padding) : at::Tensor(),
            needs[2] ? at::sum(grad.flatten(2), at::IntArrayRef{0, 2}) : at::Tensor()};
  }
  const at::Tensor weight = given_weight.to(input.scalar_type());
  const auto torchs = [&](const at::Tensor& dy, std::array<bool, 3> mask) {
    return convolution_backward(dy, input, weight, options, mask);
  };
  const at::ScalarType type = weight.scalar_type();
  if (!needs[1] || input.dim() != weight.dim() || input.numel() == 0 ||
      (type != at::kFloat && !at::isReducedFloatingType(type)))
    return torchs(grad, needs);
  // A transposed convolution is one backwards.
  const at::Tensor &image = transposed ? grad : input, &output = transposed ? input : grad;
  const at::MemoryFormat format = input.suggest_memory_format();
  const ConvForm form{weight.sizes().slice(2), stride, padding};
  const bool has_ours =
      groups == 1 && are_all(dilation, 1) && has_conv_weight_grad(image, output, form);
  at::Tensor dy = grad, of_input, of_weight, of_bias;
  if (has_ours) {
    const at::MemoryFormat last =
        input.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    dy = grad.contiguous(last);
    of_weight = conv_weight_grad(transposed ? dy : input,
                                 (transposed ? input : dy).contiguous(last),
                                 form,
                                 weight.suggest_memory_format());
  } else {
    const SafeForm safe(image, output, weight, {stride, padding, dilation, groups});
    const Form plain{safe.stride, safe.padding, dilation, groups};
    const int64_t parts = count_parts(output, weight);
    if (parts < 2 && safe.image.is_same(image)) return torchs(grad, needs);
    dy = grad.contiguous(format);
    const at::Tensor x = safe.image.is_same(grad) ? dy : safe.image.contiguous(format),
                     y = transposed ? input.contiguous(format) : dy;
    if (parts >= 2) {
      of_weight = weight_grad_in_parts(parts, x, y, weight, plain);
    } else {
      const std::vector<int64_t> none(safe.stride.size(), 0);
      const ConvOptions one{safe.stride, safe.padding, dilation, false, none, groups};
      of_weight = std::get<1>(convolution_backward(y, x, weight, one, {false, true, false}));
    }
  }
  if (needs[0]) of_input = std::get<0>(torchs(dy, {true, false, false}));
  if (needs[2]) of_bias = at::sum(dy.flatten(2), at::IntArrayRef{0, 2});
  return {of_input, of_weight, of_bias};
}

}  // namespace cytra::ops::cpu
