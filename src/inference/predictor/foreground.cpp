#include "inference/predictor/foreground.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/lists.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/options.h"
#include "data/sample/image_tensor.h"
#include "inference/postprocess/thresholds.h"
#include "io/formats.h"
#include "io/reader.h"

namespace cytra::inference {

std::optional<ForegroundRule> foreground_rule(const config::Node& given) {
  if (given.is_null()) return {};
  ForegroundRule rule;
  if (given.kind == config::Kind::integer || given.kind == config::Kind::real) {
    rule.threshold = given.as<double>();
  } else if (given.kind == config::Kind::string) {
    std::string text = trim(given.string);
    if (text.starts_with('<') || text.starts_with('>')) {
      rule.is_above = text[0] == '>';
      text = trim(text.substr(1));
    }
    if (text == "otsu") return rule;
    double number = 0;
    const char* const end = text.data() + text.size();
    std::error_code none;
    if (std::from_chars(text.data(), end, number).ptr == end && !text.empty()) {
      rule.threshold = number;
    } else if (std::filesystem::exists(text, none)) {
      rule.mask = text;
      return rule;
    }
  }
  if (rule.threshold && std::isfinite(*rule.threshold)) return rule;
  config::throw_bad_value(
      given,
      "a rule for foreground: 100 or '>100' (values above), '<220' (below), otsu or '<otsu', or a "
      "mask: an image, or a folder with one of each image's name");
}

namespace {

/// The middle between the means of the two sides that Otsu's threshold divides. It is that
/// threshold, but where no value lies between the sides, which are divided at the lower one's end.
double between_sides(const at::Tensor& values) {
  const double threshold = find_threshold(values, "otsu");
  const at::Tensor above = values.masked_select(values.gt(threshold)),
                   below = values.masked_select(values.le(threshold));
  if (above.numel() == 0) return threshold;
  return (above.mean(at::kDouble).item<double>() + below.mean(at::kDouble).item<double>()) / 2;
}

std::array<int64_t, 3> zyx_of(const std::vector<int64_t>& shape) {
  const std::size_t dims = shape.size();
  return {dims == 4 ? shape[1] : 1, shape[dims - 2], shape[dims - 1]};
}

/// The mask of an image.
std::string mask_of(const data::Sample& sample, const std::string& given) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(given) || io::is_image_path(given)) return given;
  const auto source = sample.sources.find(sample.image);
  const std::string name = source == sample.sources.end() ? sample.id : source->second.path,
                    stem = io::stem_of(name);
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(given)) {
    if (io::is_image_path(entry.path()) && io::stem_of(entry.path()) == stem)
      found.push_back(entry.path());
  }
  if (found.size() == 1) return found[0];
  throw ConfigError("predict.skip_empty: {}: expected one image {}.*, the mask of {}, got {}",
                    given,
                    stem,
                    name,
                    found.size());
}

}  // namespace

Foreground::Foreground(const ForegroundRule& rule, const ModelInput& input)
    : rule_(rule), input_(input) {
  if (!rule.mask.empty()) {
    read_mask(mask_of(input.sample, rule.mask));
    return;
  }
  const int64_t channels = input.shown(0, 1).size(0);
  if (rule.threshold) {
    thresholds_.assign(static_cast<std::size_t>(channels), *rule.threshold);
    return;
  }
  // A large image shows itself in some runs of rows, as its file has tiles.
  constexpr int64_t kVoxels = int64_t{1} << 24, kRuns = 16;
  int64_t row = 1;
  for (std::size_t d = 2; d < input.shape.size(); ++d) row *= input.shape[d];
  const int64_t height = input.shape[1], wanted = std::min(height, kVoxels / row + 1),
                runs = wanted == height ? 1 : std::min(wanted, kRuns);
  std::vector<at::Tensor> parts;
  for (int64_t run = 0; run < runs; ++run)
    parts.push_back(input.shown(run * height / runs, wanted / runs));
  const at::Tensor all = at::cat(parts, 1);
  for (const at::Tensor& channel : all.unbind(0)) thresholds_.push_back(between_sides(channel));
}

void Foreground::read_mask(const std::string& path) {
  mask_path_ = path;
  mask_ = data::to_tensor(io::read_image(path), 3, path).ne(0).any(0).to(at::kFloat);
  if (!input_.is_in_place) {
    throw DataError("{}: predict.skip_empty={}: transforms move the voxels of the image",
                    input_.sample.id,
                    path);
  }
  const std::array<int64_t, 3> size = zyx_of(input_.shape);
  const double height = static_cast<double>(size[1] * mask_.size(2)) / static_cast<double>(size[2]);
  const bool has_proportions = std::abs(static_cast<double>(mask_.size(1)) - height) <= 1.5;
  if (has_proportions && (mask_.size(0) == 1 || mask_.size(0) == size[0])) return;
  throw DataError("{}: a mask of {} voxels, expected the sides of {}, {}, or their proportions",
                  path,
                  fmt::join(mask_.sizes(), "x"),
                  input_.sample.id,
                  fmt::join(size, "x"));
}

at::Tensor Foreground::rows_of_mask(int64_t first, int64_t count) const {
  const std::array<int64_t, 3> size = zyx_of(input_.shape);
  const std::size_t along = input_.shape.size() == 4 ? 0 : 1;  // the axis of rows
  at::Tensor rows = mask_;
  for (std::size_t d = 0; d < 3; ++d) {
    const auto axis = static_cast<int64_t>(d);
    const int64_t begin = d == along ? first : 0, end = d == along ? first + count : size[d];
    std::vector<int64_t> nearest;
    for (int64_t place = begin; place < end; ++place)
      nearest.push_back((2 * place + 1) * mask_.size(axis) / (2 * size[d]));
    rows = rows.index_select(axis, at::tensor(nearest, at::kLong));
  }
  return input_.shape.size() == 4 ? rows.unsqueeze(0) : rows;
}

/// (1,count,...) float32: 1 or 0.
at::Tensor Foreground::rows(int64_t first, int64_t count) const {
  if (mask_.defined()) return rows_of_mask(first, count);
  const at::Tensor values = input_.shown(first, count);
  std::vector<at::Tensor> channels;
  for (int64_t c = 0; c < values.size(0); ++c) {
    const double threshold = thresholds_[static_cast<std::size_t>(c)];
    channels.push_back(rule_.is_above ? values[c].gt(threshold) : values[c].lt(threshold));
  }
  return at::stack(channels).any(0, /*keepdim=*/true).to(at::kFloat);
}

RowSource Foreground::mark(const RowSource& image) const {
  RowSource marked = image;
  ++marked.shape[0];
  marked.read = [this, read = image.read](int64_t first, int64_t count) {
    return at::cat({read(first, count), rows(first, count)});
  };
  return marked;
}

Forward Foreground::only(Forward forward, std::vector<double> background) {
  // Outputs (1,K,...) of a window without foreground, once their sizes are known.
  auto empty = std::make_shared<std::vector<at::Tensor>>();
  return [this, forward = std::move(forward), background = std::move(background), empty](
             const at::Tensor& windows) {
    const int64_t count = windows.size(0), channels = windows.size(1) - 1;
    const at::Tensor has_any = windows.narrow(1, channels, 1).flatten(1).gt(0).any(1).cpu();
    std::vector<int64_t> full;
    for (int64_t i = 0; i < count; ++i)
      if (has_any.const_data_ptr<bool>()[i]) full.push_back(i);
    windows_ += count;
    empty_ += count - std::ssize(full);
    const auto parts_of = [&](const std::vector<int64_t>& which) {
      return windows.narrow(1, 0, channels)
          .index_select(0, at::tensor(which, at::kLong).to(windows.device()));
    };
    if (full.empty() && !empty->empty()) {
      return mapped(*empty, [&](const at::Tensor& one) {
        std::vector<int64_t> shape(static_cast<std::size_t>(one.dim()), 1);
        shape[0] = count;
        return one.repeat(shape);
      });
    }
    std::vector<at::Tensor> made = forward(parts_of(full.empty() ? std::vector<int64_t>{0} : full));
    if (empty->empty()) {
      for (const at::Tensor& output : made)
        empty->push_back(at::zeros_like(output.narrow(0, 0, 1)));
      for (int64_t c = 0; c < std::ssize(background) && c < made[0].size(1); ++c)
        empty->front().select(1, c).fill_(background[static_cast<std::size_t>(c)]);
    }
    for (std::size_t o = 0; o < made.size(); ++o) {
      if (std::ssize(full) == count) break;
      std::vector<at::Tensor> all(static_cast<std::size_t>(count), (*empty)[o]);
      for (std::size_t i = 0; i < full.size(); ++i)
        all[static_cast<std::size_t>(full[i])] = made[o].narrow(0, static_cast<int64_t>(i), 1);
      made[o] = at::cat(all);
    }
    return made;
  };
}

void Foreground::tell(const std::string& id) const {
  const bool are_all = empty_ == windows_;
  const auto text = [](double threshold) { return fmt::format("{:.6g}", threshold); };
  const std::string what = mask_.defined()
                               ? "nothing of the mask " + mask_path_
                               : fmt::format("no value {} {}",
                                             rule_.is_above ? "above" : "below",
                                             fmt::join(mapped(thresholds_, text), ", "));
  log::write(
      are_all ? log::Level::warn : log::Level::info,
      fmt::format("{}: {} of {} windows hold {} and were left out{}",
                  id,
                  empty_,
                  windows_,
                  what,
                  are_all ? ": the result is nothing but background (predict.skip_empty)" : ""));
}

}  // namespace cytra::inference
