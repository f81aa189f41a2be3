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

/// Whether a side that is padded is short beside the kernel.
bool is_short(const at::Tensor& image, const at::Tensor& weight, const Form& form) {
  for (std::size_t d = 0; d < form.padding.size(); ++d) {
    const auto axis = static_cast<int64_t>(d) + 2;
    const int64_t extent = form.dilation[d] * (weight.size(axis) - 1) + 1;
    if (form.padding[d] > 0 && image.size(axis) < 2 * std::max(extent, form.stride[d])) return true;
  }
  return false;
}

/// The same convolution without what torch 2.11's oneDNN computes wrong: 1x1 kernels that skip
/// pixels (it crashes with those of one channel), padded sides that are short beside the kernel,
/// and strides to nowhere (it reads memory that nothing was written to, and writes beyond its
/// tensors).
struct SafeForm {
  SafeForm(const at::Tensor& of_image,
           const at::Tensor& output,
           const at::Tensor& weight,
           const Form& form)
      : image(of_image),
        stride(form.stride.begin(), form.stride.end()),
        padding(form.padding.begin(), form.padding.end()) {
    const std::size_t dims = stride.size();
    if (padding.size() != dims || static_cast<int64_t>(dims) != weight.dim() - 2) return;
    if (skips_pixels(weight, stride, padding)) {
      for (std::size_t d = 0; d < dims; ++d)
        image = image.slice(static_cast<int64_t>(d) + 2, 0, std::nullopt, stride[d]);
      stride.assign(dims, 1);
    } else if (is_short(image, weight, form)) {
      std::vector<int64_t> around;  // from the last side
      for (std::size_t d = dims; d-- > 0;) around.insert(around.end(), 2, padding[d]);
      image = at::constant_pad_nd(image, around);
      padding.assign(dims, 0);
    }
    for (std::size_t d = 0; d < dims; ++d) {
      const auto axis = static_cast<int64_t>(d) + 2;
      if (output.size(axis) != 1 || stride[d] == 1 || padding[d] > 0) continue;
      image = image.narrow(axis, 0, form.dilation[d] * (weight.size(axis) - 1) + 1);
      stride[d] = 1;
    }
  }
  at::Tensor image;
  std::vector<int64_t> stride, padding;
};

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
  if (!needs[1]) return torchs(grad, needs);
  // A transposed convolution is one backwards.
  const at::Tensor &image = transposed ? grad : input, &output = transposed ? input : grad;
  const SafeForm safe(image, output, weight, {stride, padding, dilation, groups});
  const cpu::ConvForm form{weight.sizes().slice(2), safe.stride, safe.padding};
  const Form plain{safe.stride, safe.padding, dilation, groups};
  const auto is_one = [](int64_t d) { return d == 1; };
  const at::MemoryFormat format = input.suggest_memory_format();
  const bool has_ours = groups == 1 && std::all_of(dilation.begin(), dilation.end(), is_one) &&
                        cpu::has_conv_weight_grad(safe.image, output, form);
  const int64_t parts = has_ours ? 0 : count_parts(output, weight, plain);
  if (!has_ours && parts < 2 && safe.image.is_same(image)) return torchs(grad, needs);

  const at::Tensor dy = grad.contiguous(format), y = transposed ? input : dy,
                   x = safe.image.is_same(grad) ? dy : safe.image.contiguous(format);
  at::Tensor of_input, of_weight, of_bias;
  if (needs[0]) of_input = std::get<0>(torchs(dy, {true, false, false}));
  if (needs[2]) of_bias = at::sum(dy.flatten(2), at::IntArrayRef{0, 2});
  if (has_ours) {
    of_weight = cpu::conv_weight_grad(x, y, form, weight.suggest_memory_format());
  } else if (parts >= 2) {
    of_weight = weight_grad_in_parts(parts, x, y, weight, plain);
  } else {
    of_weight = std::get<1>(
        cpu::convolution_backward(y,
                                  x,
                                  weight,
                                  std::nullopt,
                                  {safe.stride, safe.padding, dilation, false, {0}, groups},
                                  {false, true, false}));
  }
  return {of_input, of_weight, of_bias};
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("convolution_backward", TORCH_FN(backward_on_cpu));
}

}  // namespace
}  // namespace cytra::ops
