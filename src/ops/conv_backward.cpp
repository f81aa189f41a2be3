// torch's convolution_backward on a CPU, so of every convolution, transposed or not: the weight's
// gradient by a kernel of ours where it is faster, else in a part for each thread where it has few
// values, all else as before. Threads that share one such gradient wait for each other inside of
// oneDNN, and spin: beside another program on these cores each wait takes a time slice.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include "ops/compute_alone.h"
#include "ops/conv_onednn.h"
#include "ops/conv_weight_grad.h"

namespace cytra::ops {
namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of input, weight and bias

/// Of a convolution that is not transposed.
struct Form {
  at::IntArrayRef stride, padding, dilation;
  int64_t groups;
};

constexpr int64_t kMostValues = int64_t{1} << 21;  // of all parts: they are added at the end
constexpr int64_t kFewestPixels = 512;             // of a part: fewer cost less than their adding

/// Parts of one gradient: ranges of samples, or of the output's rows where samples are few. Fewer
/// than two: as torch has it.
int64_t count_parts(const at::Tensor& output, const at::Tensor& weight, const Form& form) {
  const at::ScalarType type = weight.scalar_type();
  const auto dims = static_cast<std::size_t>(weight.dim() - 2);
  if (at::in_parallel_region() || output.numel() == 0 || weight.numel() == 0 ||
      output.scalar_type() != type || (type != at::kFloat && type != at::kBFloat16) ||
      form.stride.size() != dims || form.padding.size() != dims || form.dilation.size() != dims)
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
      sums[static_cast<std::size_t>(part)] = std::get<1>(
          cpu::convolution_backward(dy,
                                    x,
                                    weight,
                                    std::nullopt,
                                    {form.stride, padding, form.dilation, false, {0}, form.groups},
                                    {false, true, false}));
    }
  });
  const at::AutoDispatchBelowADInplaceOrView no_gradients;
  at::Tensor sum = sums[0].to(at::kFloat);
  for (std::size_t i = 1; i < sums.size(); ++i) sum.add_(sums[i]);
  return sum.to(weight.scalar_type());
}

bool skips_pixels(const at::Tensor& weight, at::IntArrayRef stride, at::IntArrayRef padding) {
  const auto all = [](at::IntArrayRef values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
  };
  return all(weight.sizes().slice(2), 1) && all(padding, 0) && !all(stride, 1) &&
         stride.size() == static_cast<std::size_t>(weight.dim() - 2);
}

/// Whether a side of the image has fewer pixels than the kernel.
bool exceeds(const at::Tensor& weight, const at::Tensor& image, at::IntArrayRef dilation) {
  for (std::size_t d = 0; d < dilation.size(); ++d) {
    const auto axis = static_cast<int64_t>(d) + 2;
    if (image.size(axis) <= dilation[d] * (weight.size(axis) - 1)) return true;
  }
  return false;
}

Tensors backward_on_cpu(const at::Tensor& grad,
                        const at::Tensor& input,
                        const at::Tensor& weight,
                        at::OptionalIntArrayRef bias_sizes,
                        at::IntArrayRef stride,
                        at::IntArrayRef padding,
                        at::IntArrayRef dilation,
                        bool transposed,
                        at::IntArrayRef output_padding,
                        int64_t groups,
                        std::array<bool, 3> needs) {
  const cpu::ConvOptions options{stride, padding, dilation, transposed, output_padding, groups};
  const auto torchs = [&](const at::Tensor& dy, std::array<bool, 3> mask) {
    return cpu::convolution_backward(dy, input, weight, bias_sizes, options, mask);
  };
  const auto is_one = [](int64_t d) { return d == 1; };
  if (needs[1] && !transposed && skips_pixels(weight, stride, padding)) {
    at::Tensor seen = input;  // torch 2.11's oneDNN crashes with the others, of one channel
    for (std::size_t d = 0; d < stride.size(); ++d)
      seen = seen.slice(static_cast<int64_t>(d) + 2, 0, std::nullopt, stride[d]);
    const std::vector<int64_t> ones(stride.size(), 1);
    const auto others = torchs(grad, {needs[0], false, needs[2]});
    const auto own = backward_on_cpu(grad,
                                     seen.contiguous(input.suggest_memory_format()),
                                     weight,
                                     std::nullopt,
                                     ones,
                                     padding,
                                     dilation,
                                     false,
                                     output_padding,
                                     groups,
                                     {false, true, false});
    return {std::get<0>(others), std::get<1>(own), std::get<2>(others)};
  }
  // A transposed convolution is one backwards.
  const at::Tensor &image = transposed ? grad : input, &output = transposed ? input : grad;
  if ((needs[1] || needs[2]) && at::isReducedFloatingType(weight.scalar_type()) &&
      exceeds(weight, image, dilation)) {
    // torch 2.11's oneDNN reads memory that nothing was written to (bfloat16, AVX512_BF16)
    const auto others = torchs(grad, {needs[0], false, false});
    const auto own = backward_on_cpu(grad.to(at::kFloat),
                                     input.to(at::kFloat),
                                     weight.to(at::kFloat),
                                     bias_sizes,
                                     stride,
                                     padding,
                                     dilation,
                                     transposed,
                                     output_padding,
                                     groups,
                                     {false, needs[1], needs[2]});
    const auto rounded = [&](const at::Tensor& exact) {
      return exact.defined() ? exact.to(weight.scalar_type()) : exact;
    };
    return {std::get<0>(others), rounded(std::get<1>(own)), rounded(std::get<2>(own))};
  }
  const cpu::ConvForm form{weight.sizes().slice(2), stride, padding};
  const bool has_ours = needs[1] && groups == 1 &&
                        std::all_of(dilation.begin(), dilation.end(), is_one) &&
                        cpu::has_conv_weight_grad(image, output, form);
  const Form plain{stride, padding, dilation, groups};
  const int64_t parts = needs[1] && !has_ours ? count_parts(output, weight, plain) : 0;
  if (!has_ours && parts < 2) return torchs(grad, needs);

  const at::Tensor dy = grad.contiguous(input.suggest_memory_format());
  const at::Tensor &x = transposed ? dy : input, &y = transposed ? input : dy;
  at::Tensor of_input, of_bias;
  if (needs[0]) of_input = std::get<0>(torchs(dy, {true, false, false}));
  if (needs[2]) of_bias = at::sum(dy.flatten(2), at::IntArrayRef{0, 2});
  return {of_input,
          has_ours ? cpu::conv_weight_grad(x, y, form, weight.suggest_memory_format())
                   : weight_grad_in_parts(parts, x, y, weight, plain),
          of_bias};
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("convolution_backward", TORCH_FN(backward_on_cpu));
}

}  // namespace
}  // namespace cytra::ops
