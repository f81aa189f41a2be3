// Part of inference/predictor/windowed_model.h: images through the model, part by part.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "device/memory.h"
#include "inference/predictor/foreground.h"
#include "inference/predictor/original_grid.h"
#include "inference/predictor/windowed_model.h"
#include "inference/windows/device_rows.h"

namespace cytra::inference {

std::vector<Tensor> WindowedModel::forward(const Tensor& windows, std::size_t part) const {
  return adaptive_(parts_[part].forward, windows);
}

/// The first output's values in a window that is left out.
std::vector<double> WindowedModel::background_of(const Part& part) const {
  std::vector<double> values = decoder->background(part.classes);
  if (form == "variance") values.assign(values.size(), 0);
  return values;
}

/// The image as a further part takes it: join_nnunet() has the transforms make it.
const at::Tensor& WindowedModel::prepared_for(std::size_t part, const ModelInput& input) const {
  const at::Tensor& image = input.sample.tensors.at(fmt::format("{}_{}", x_key, part - 1));
  if (image.sizes() == at::IntArrayRef(input.shape)) return image;
  throw DataError("{}: the models whose classes are joined resample it to other sizes",
                  input.sample.id);
}

ops::Finish WindowedModel::finish_of(const ModelInput& input) const {
  using Kind = ops::Finish::Kind;
  const bool are_labels = finish.kind == Kind::argmax || finish.kind == Kind::threshold;
  const bool are_moved = input.moves_back && are_labels && parts_.size() == 1 && steps.empty() &&
                         model.config.get<std::string>("task.grid_mode", "linear") == "linear";
  return are_moved ? ops::Finish() : finish;
}

ToFileGrid WindowedModel::to_file(const ModelInput& input) const {
  ToFileGrid grid;
  grid.given = input.sample.geometry();
  grid.file = input.loaded_geometry;
  grid.from.assign(input.shape.begin() + 1, input.shape.end());
  grid.to.assign(input.loaded_shape.begin() + 1, input.loaded_shape.end());
  grid.coarse_from = model.config.get<double>("task.separate_z", 0);
  grid.learned_spacing = model.config.get<std::vector<double>>("task.learned_spacing", {});
  return grid;
}

void WindowedModel::run_part(std::size_t part,
                             const ModelInput& input,
                             const SlidingWindowOptions& windows,
                             const RowSink& sink,
                             const WindowProgress& progress,
                             RowRange range) const {
  RowSource source{input.shape, [&](int64_t first, int64_t count) {
                     return part == 0 ? input.rows(first, count)
                                      : prepared_for(part, input).narrow(1, first, count);
                   }};
  Forward forward_part = [&](const at::Tensor& batch) { return forward(batch, part); };
  std::optional<Foreground> foreground;
  if (foreground_) {
    foreground.emplace(*foreground_, input);
    source = foreground->mark(source);
    forward_part = foreground->only(forward_part, background_of(parts_[part]));
  }
  const int64_t bad =
      predict_slabs(source, forward_part, windows, finish_of(input), sink, progress, range);
  if (foreground) foreground->tell(input.sample.id);
  if (bad == 0) return;
  throw DataError(
      "{}: {} of the values that the model makes of it are NaN or infinite", input.sample.id, bad);
}

void WindowedModel::run(const ModelInput& input,
                        const SlidingWindowOptions& windows,
                        const RowSink& sink,
                        const WindowProgress& progress,
                        RowRange range) const {
  if (parts_.size() == 1) return run_part(0, input, windows, sink, progress, range);
  const std::vector<int64_t> size{input.shape.begin() + 1, input.shape.end()};
  at::Tensor joined;
  int64_t before = 0;  // classes
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    std::vector<at::Tensor> rows;
    run_part(
        p,
        input,
        p == 0 ? windows : windows_of(parts_[p], input.sample.id, size, input.sample.folder),
        [&](int64_t, const std::vector<at::Tensor>& values) { rows.push_back(values[0].clone()); },
        [&](int64_t done, int64_t total) {
          const auto parts = std::ssize(parts_);
          if (progress) progress(done + static_cast<int64_t>(p) * total, parts * total);
        },
        range);
    const at::Tensor labels = at::cat(rows, 1).to(at::kInt);
    joined = p == 0 ? labels : at::where(labels.eq(0), joined, labels + before);
    before += parts_[p].classes - 1;
  }
  sink(range.begin, {joined.to(finish.type)});
}

Tensor WindowedModel::run(const ModelInput& input, const SlidingWindowOptions& windows) const {
  std::vector<at::Tensor> parts;
  run(input, windows, [&](int64_t, const std::vector<at::Tensor>& rows) {
    parts.push_back(rows[0].cpu().clone());
  });
  return at::cat(parts, 1);
}

void WindowedModel::run(const std::vector<const ModelInput*>& inputs,
                        const SlidingWindowOptions& windows,
                        const std::function<void(std::size_t image, const Tensor& values)>& sink,
                        const WindowProgress& progress) const {
  const bool is_one_by_one = parts_.size() > 1 || foreground_;
  for (std::size_t i = 0; is_one_by_one && i < inputs.size(); ++i) {
    std::vector<at::Tensor> all;
    run(
        *inputs[i],
        windows,
        [&](int64_t, const std::vector<at::Tensor>& rows) { all.push_back(rows[0].clone()); },
        progress);
    sink(i, at::cat(all, 1));
  }
  if (is_one_by_one) return;
  std::vector<at::Tensor> images;
  for (const ModelInput* input : inputs) images.push_back(input->rows(0, input->shape[1]));
  const at::Tensor logits =
      sliding_window(device::to_device(at::stack(images), device),
                     Forward([this](const at::Tensor& batch) { return forward(batch); }),
                     windows,
                     progress)
          .at(0);
  const std::vector<bool> fine = are_finite(logits);
  const std::vector<at::Tensor> each = logits.split(1);
  for (std::size_t i = 0; i < fine.size(); ++i)
    sink(i, fine[i] ? ops::finish(each[i], {}, finish_of(*inputs[i]))[0] : at::Tensor());
}

}  // namespace cytra::inference
