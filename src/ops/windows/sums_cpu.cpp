// Part of ops/windows/passes.h: the passes on a CPU, by kernels of our own.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/windows/passes.h"
#include "ops/windows/rows.h"

namespace cytra::ops::cpu {
namespace {

constexpr int64_t kLine = 512;    // voxels that are finished at a time
constexpr int64_t kWork = 32768;  // values: less is done before a second thread has started

/// The weights of a window's rows.
struct WindowWeights {
  const WindowGrid& grid;
  const float* map;

  explicit WindowWeights(const WindowGrid& of)
      : grid(of), map(of.map.defined() ? of.map.const_data_ptr<float>() : nullptr) {}
  /// The weights of the row z, y of a window, from x on.
  RowWeight row(int64_t z, int64_t y, int64_t x) const {
    const auto& axes = grid.axes;
    if (map != nullptr)
      return {
          map + (z * axes[1].roi + y) * axes[2].roi + x, 1, std::numeric_limits<float>::lowest()};
    return {
        axes[2].weights.data() + x,
        axes[0].weights[static_cast<std::size_t>(z)] * axes[1].weights[static_cast<std::size_t>(y)],
        grid.floor};
  }
};

template <class T>
void gather_as(const at::Tensor& image,
               const WindowGrid& grid,
               int64_t first,
               float pad_value,
               const at::Tensor& windows) {
  struct Window {
    std::array<const int64_t*, 3> source;  // where its voxels come from, per axis
    WindowBox box;
  };
  std::vector<Window> all;
  for (int64_t w = first; w < first + windows.size(0); ++w) {
    Window& window = all.emplace_back(Window{{}, box_of(grid, w)});
    const std::array<int64_t, 3> place = grid.place(w);
    for (std::size_t d = 0; d < 3; ++d) {
      const WindowAxis& axis = grid.axes[d];
      window.source[d] = axis.source.data() + axis.starts[static_cast<std::size_t>(place[d])];
    }
  }
  const T* from = image.const_data_ptr<T>();
  float* to = windows.mutable_data_ptr<float>();
  const int64_t channels = windows.size(1), depth = windows.size(2), height = windows.size(3);
  const int64_t width = windows.size(4), stride = windows.stride(4), length = image.size(1);
  const auto copy_row = [&](int64_t s, int64_t c, int64_t z, int64_t y) {
    const auto& [source, box] = all[static_cast<std::size_t>(s)];
    float* line = to + s * windows.stride(0) + c * windows.stride(1) + z * windows.stride(2) +
                  y * windows.stride(3);
    if (source[0][z] < 0 || source[1][y] < 0) {
      for (int64_t x = 0; x < width; ++x) line[x * stride] = pad_value;
      return;
    }
    const T* found = from + c * image.stride(0) + source[0][z] % length * image.stride(1) +
                     source[1][y] * image.stride(2);
    const auto copy_edge = [&, along = source[2]](int64_t begin, int64_t end) {
      for (int64_t x = begin; x < end; ++x)
        line[x * stride] = along[x] < 0 ? pad_value : static_cast<float>(found[along[x]]);
    };
    const int64_t skip = box.skip[2], run = box.to[2] - box.from[2];  // within the image
    const T* inside = found + box.from[2];
    float* copy = line + skip * stride;
    copy_edge(0, skip);
    if (stride == 1 && std::is_same_v<T, float>)
      std::memcpy(copy, inside, static_cast<std::size_t>(run) * sizeof(float));
    else
      for (int64_t x = 0; x < run; ++x) copy[x * stride] = static_cast<float>(inside[x]);
    copy_edge(skip + run, width);
  };
  const int64_t rows = windows.size(0) * channels * depth * height;
  at::parallel_for(0, rows, std::max<int64_t>(1, kWork / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      copy_row(row / height / depth / channels,
               row / height / depth % channels,
               row / height % depth,
               row % height);
    }
  });
}

template <class T>
void accumulate_as(const at::Tensor& values,
                   const WindowGrid& grid,
                   int64_t first,
                   const at::Tensor& sums,
                   void (*sum_row)(const SumRow<T>& row)) {
  const int64_t count = values.size(0), classes = values.size(1);
  const int64_t length = sums.size(1), height = sums.size(2), width = sums.size(3);
  const bool is_interleaved = values.stride(4) != 1;
  const WindowWeights weights(grid);
  std::vector<WindowBox> boxes;
  int64_t low = std::numeric_limits<int64_t>::max(), high = 0;  // rows z, y of all windows
  for (int64_t s = 0; s < count; ++s) {
    const WindowBox& box = boxes.emplace_back(box_of(grid, first + s));
    low = std::min(low, box.from[0] * height + box.from[1]);
    high = std::max(high, (box.to[0] - 1) * height + box.to[1]);
  }
  const T* from = values.const_data_ptr<T>();
  float* to = sums.mutable_data_ptr<float>();
  const auto add_row = [&](int64_t s, int64_t k, int64_t z, int64_t y) {
    const WindowBox& box = boxes[static_cast<std::size_t>(s)];
    const int64_t dz = z - box.from[0] + box.skip[0], dy = y - box.from[1] + box.skip[1];
    const T* row = from + s * values.stride(0) + k * values.stride(1) + dz * values.stride(2) +
                   dy * values.stride(3) + box.skip[2] * values.stride(4);
    const int64_t end = box.to[2] - box.from[2];
    const bool is_fresh = z >= box.fresh[0] && y >= box.fresh[1];
    sum_row({row,
             values.stride(4),
             to + ((k * length + z % length) * height + y) * width + box.from[2],
             is_fresh ? box.fresh[2] - box.from[2] : end,
             end,
             weights.row(dz, dy, box.skip[2])});
  };
  const int64_t work = std::max<int64_t>(1, kWork / std::max<int64_t>(1, width * classes));
  at::parallel_for(low, std::max(low, high), work, [&](int64_t begin, int64_t end) {
    for (int64_t s = 0; s < count; ++s) {
      const WindowBox& box = boxes[static_cast<std::size_t>(s)];
      const auto for_rows = [&](auto&& visit) {
        for (int64_t z = box.from[0]; z < box.to[0]; ++z) {
          const int64_t y_end = std::min(box.to[1], end - z * height);
          for (int64_t y = std::max(box.from[1], begin - z * height); y < y_end; ++y) visit(z, y);
        }
      };
      if (is_interleaved) {
        for_rows([&](int64_t z, int64_t y) {
          for (int64_t k = 0; k < classes; ++k) add_row(s, k, z, y);
        });
      } else {
        for (int64_t k = 0; k < classes; ++k)
          for_rows([&](int64_t z, int64_t y) { add_row(s, k, z, y); });
      }
    }
  });
}

/// Finishes a line; types other than float go through `scratch`.
template <class T>
bool finish_line(FinishRow row, const Finish& finish, T* out, std::vector<float>& scratch) {
  row.cut = static_cast<float>(std::log(finish.threshold / (1 - finish.threshold)));
  const int64_t voxels = row.voxels, channels = finish.channels(row.classes),
                stride = row.out_stride;
  const RowLoops& loops = row_loops();
  if constexpr (std::is_same_v<T, float>) {
    row.out = out;
    return loops.finish(row);
  } else {
    const bool is_share =
        finish.kind == Finish::Kind::sigmoid || finish.kind == Finish::Kind::softmax;
    const bool is_byte = is_share && std::is_same_v<T, uint8_t>;
    const float scale = is_byte ? 255.F : 1.F, half = is_byte ? 0.5F : 0.F;
    scratch.resize(static_cast<std::size_t>(channels * kLine));
    row.out = scratch.data();
    row.out_stride = kLine;
    bool is_finite = true;
    for (int64_t x = 0; x < voxels; x += kLine) {
      row.voxels = std::min(kLine, voxels - x);
      is_finite = loops.finish(row) && is_finite;
      for (int64_t k = 0; k < channels; ++k) {
        const float* from = row.out + k * kLine;
        T* to = out + k * stride + x;
        for (int64_t i = 0; i < row.voxels; ++i) to[i] = static_cast<T>(from[i] * scale + half);
      }
      row.sums += kLine;
      if (row.weights != nullptr) row.weights += kLine;
    }
    return is_finite;
  }
}

/// Calls work(T{}) with the element type of `type`.
void with_type(at::ScalarType type, const auto& work) {
  switch (type) {
    case at::kFloat:
      return work(float{});
    case at::kHalf:
      return work(at::Half{});
    case at::kBFloat16:
      return work(at::BFloat16{});
    case at::kByte:
      return work(uint8_t{});
    case at::kUInt16:
      return work(uint16_t{});
    case at::kInt:
      return work(int32_t{});
    case at::kLong:
      return work(int64_t{});
    case at::kBool:
      return work(bool{});
    default:
      throw std::logic_error("finish: a type that results do not have");
  }
}

/// The sum of the weights of all windows over row z, y.
void sum_weights(const WindowGrid& grid, int64_t z, int64_t y, std::vector<float>& line) {
  const WindowWeights weights(grid);
  const std::array<int64_t, 2> row{z, y};
  std::ranges::fill(line, 0.F);
  const auto for_windows = [&](std::size_t d, auto&& visit) {
    const WindowAxis& axis = grid.axes[d];
    for (const int64_t start : axis.starts) {
      const int64_t inside = row[d] - (start - axis.before);
      if (inside >= 0 && inside < axis.roi) visit(inside);
    }
  };
  const WindowAxis& axis = grid.axes[2];
  for_windows(0, [&](int64_t dz) {
    for_windows(1, [&](int64_t dy) {
      for (const int64_t start : axis.starts) {
        const int64_t from = std::max<int64_t>(start - axis.before, 0);
        const int64_t end = std::min(start - axis.before + axis.roi, axis.size);
        row_loops().add_weights(
            weights.row(dz, dy, from - (start - axis.before)), line.data() + from, end - from);
      }
    });
  });
}

void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t first,
            double pad_value,
            const at::Tensor& windows) {
  const at::Tensor from = image.stride(3) == 1 || image.size(3) == 1 ? image : image.contiguous();
  const auto pad = static_cast<float>(pad_value);
  switch (from.scalar_type()) {
    case at::kFloat:
      return gather_as<float>(from, grid, first, pad, windows);
    case at::kHalf:
      return gather_as<at::Half>(from, grid, first, pad, windows);
    case at::kBFloat16:
      return gather_as<at::BFloat16>(from, grid, first, pad, windows);
    case at::kByte:
      return gather_as<uint8_t>(from, grid, first, pad, windows);
    case at::kUInt16:
      return gather_as<uint16_t>(from, grid, first, pad, windows);
    case at::kShort:
      return gather_as<int16_t>(from, grid, first, pad, windows);
    default:
      return gather_as<float>(from.to(at::kFloat), grid, first, pad, windows);
  }
}

void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums) {
  const RowLoops& loops = row_loops();
  switch (values.scalar_type()) {
    case at::kFloat:
      return accumulate_as<float>(values, grid, first, sums, loops.sum_float);
    case at::kBFloat16:
      return accumulate_as<at::BFloat16>(values, grid, first, sums, loops.sum_bfloat16);
    case at::kHalf:
      return accumulate_as<at::Half>(values, grid, first, sums, loops.sum_half);
    default:
      return accumulate_as<float>(values.to(at::kFloat), grid, first, sums, loops.sum_float);
  }
}

void finish_rows(const at::Tensor& sums,
                 const WindowGrid& grid,
                 int64_t begin,
                 int64_t end,
                 const Finish& finish,
                 const at::Tensor& out,
                 const at::Tensor& bad) {
  const int64_t height = sums.size(2), width = sums.size(3);
  std::atomic<bool> is_finite{true};
  const int64_t work = std::max<int64_t>(1, kWork / std::max<int64_t>(1, width * sums.size(0)));
  with_type(finish.type, [&](auto type) {
    using T = decltype(type);
    T* to = out.mutable_data_ptr<T>();
    at::parallel_for(begin * height, end * height, work, [&](int64_t low, int64_t high) {
      std::vector<float> weights(static_cast<std::size_t>(width)), scratch;
      for (int64_t row = low; row < high; ++row) {
        const int64_t z = row / height, y = row % height;
        sum_weights(grid, z, y, weights);
        const FinishRow line{
            sums.const_data_ptr<float>() + z % sums.size(1) * sums.stride(1) + y * width,
            sums.size(0),
            sums.stride(0),
            width,
            weights.data(),
            finish.kind,
            0,
            nullptr,
            out.stride(0)};
        if (!finish_line(line, finish, to + (z - begin) * out.stride(1) + y * width, scratch))
          is_finite = false;
      }
    });
  });
  if (is_finite || !bad.defined()) return;
  for (int64_t row = begin; row < end; ++row)
    bad.add_(sums.select(1, row % sums.size(1)).isfinite().logical_not_().sum());
}

void finish_voxels(const at::Tensor& given,
                   const at::Tensor& weights,
                   const Finish& finish,
                   const at::Tensor& out) {
  const at::Tensor sums = given.contiguous();
  const int64_t classes = sums.size(0), voxels = sums.size(1);
  const int64_t work = std::max<int64_t>(1, kWork / std::max<int64_t>(1, classes));
  with_type(finish.type, [&](auto type) {
    using T = decltype(type);
    T* to = out.mutable_data_ptr<T>();
    at::parallel_for(0, voxels, work, [&](int64_t begin, int64_t end) {
      const FinishRow line{sums.const_data_ptr<float>() + begin,
                           classes,
                           sums.stride(0),
                           end - begin,
                           weights.defined() ? weights.const_data_ptr<float>() + begin : nullptr,
                           finish.kind,
                           0,
                           nullptr,
                           out.stride(0)};
      std::vector<float> scratch;
      finish_line(line, finish, to + begin, scratch);
    });
  });
}

}  // namespace
}  // namespace cytra::ops::cpu

const cytra::ops::WindowPasses& cytra::ops::cpu_passes() {
  static constexpr WindowPasses passes{
      cpu::gather, cpu::accumulate, cpu::finish_rows, cpu::finish_voxels};
  return passes;
}
