#include "ops/labels/label_blocks.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "ops/boxes/label_boxes.h"

namespace cytra::ops {
namespace {

const LabelBlocks::Sizes& usual_sizes(std::size_t dims) {
  static const LabelBlocks::Sizes plane{{1536, 1536}, {128, 128}, {256, 256}},
      volume{{128, 256, 256}, {24, 24, 24}, {48, 48, 48}};
  return dims == 3 ? volume : plane;
}

}  // namespace

/// The inner part [begin, end) of a block along an axis, and the block itself.
struct LabelBlocks::Range {
  int64_t begin, end, first, last;
};

struct LabelBlocks::Column {
  Block across;       // along each axis but that of rows
  at::Tensor values;  // (n,C,...)
};

LabelBlocks::LabelBlocks(Make make,
                         std::vector<int64_t> image,
                         std::string folder,
                         int64_t bytes_per_voxel)
    : LabelBlocks(
          std::move(make), image, std::move(folder), usual_sizes(image.size()), bytes_per_voxel) {}

LabelBlocks::LabelBlocks(Make make,
                         std::vector<int64_t> image,
                         std::string folder,
                         const Sizes& sizes,
                         int64_t bytes_per_voxel)
    : make_(std::move(make)),
      image_(std::move(image)),
      folder_(std::move(folder)),
      sizes_(sizes),
      bytes_per_voxel_(bytes_per_voxel) {
  for (std::size_t d = 0; d < image_.size(); ++d) {
    const int64_t size = image_[d], before = sizes.before[d], after = sizes.after[d];
    const int64_t inner = size <= sizes.block[d] ? size : sizes.block[d] - before - after;
    const int64_t count = (size + inner - 1) / std::max<int64_t>(inner, 1);
    std::vector<Range>& ranges = ranges_.emplace_back();
    const int64_t step = count == 0 ? 1 : (size + count - 1) / count;  // parts of about equal sizes
    for (int64_t begin = 0; begin < size; begin += step) {
      const int64_t end = std::min(begin + step, size);
      ranges.push_back(
          {begin, end, std::max<int64_t>(begin - before, 0), std::min(end + after, size)});
    }
  }
}

LabelBlocks::~LabelBlocks() = default;

/// The voxels of a block in rows that are kept: its one or two parts.
std::vector<at::Tensor> LabelBlocks::parts_of(const at::Tensor& kept, const Block& block) const {
  const int64_t count = kept.size(0), at = block[0].first % count;
  const int64_t rows = block[0].last - block[0].first, below = std::min(rows, count - at);
  std::vector<at::Tensor> parts{kept.narrow(0, at, below)};
  if (below < rows) parts.push_back(kept.narrow(0, 0, rows - below));
  for (at::Tensor& part : parts) {
    for (std::size_t d = 1; d < block.size(); ++d) {
      const auto axis = static_cast<int64_t>(d) - static_cast<int64_t>(block.size());
      part = part.narrow(axis, block[d].first, block[d].last - block[d].first);
    }
  }
  return parts;
}

void LabelBlocks::allocate(const at::Tensor& rows) {
  int64_t most = 0;
  for (const Range& range : ranges_[0]) most = std::max(most, range.last - range.first);
  for (std::size_t d = 1; d < ranges_.size(); ++d) {
    std::vector<Column> longer;
    for (const Column& column : d == 1 ? std::vector<Column>{{}} : columns_) {
      for (const Range& range : ranges_[d]) {
        longer.push_back(column);
        longer.back().across.push_back(range);
      }
    }
    columns_ = std::move(longer);
  }
  std::vector<std::vector<int64_t>> shapes;
  int64_t voxels = 0;
  for (const Column& column : columns_) {
    std::vector<int64_t>& shape = shapes.emplace_back(std::vector<int64_t>{most, rows.size(0)});
    for (const Range& range : column.across) shape.push_back(range.last - range.first);
    voxels += c10::multiply_integers(shape);
  }
  std::vector<int64_t> image = image_;
  image[0] = most;
  const int64_t in_memory = std::min(sizes_.in_memory, kept_in_memory());
  values_ = KeptRows({voxels}, at::kFloat, folder_, in_memory);
  labels_ = KeptRows(image, at::kInt, folder_, in_memory);
  int64_t first = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const int64_t count = c10::multiply_integers(shapes[i]);
    columns_[i].values = values_.rows.narrow(0, first, count).view(shapes[i]);
    first += count;
  }
}

void LabelBlocks::keep(const at::Tensor& rows) {
  if (columns_.empty()) allocate(rows);
  for (const Column& column : columns_) {
    at::Tensor part = rows.transpose(0, 1);
    for (std::size_t d = 0; d < column.across.size(); ++d) {
      const auto& [begin, end, first, last] = column.across[d];
      part = part.narrow(static_cast<int64_t>(d) + 2, first, last - first);
    }
    for (int64_t i = 0; i < rows.size(1); ++i)
      column.values.select(0, (taken_ + i) % column.values.size(0)).copy_(part[i]);
  }
  taken_ += rows.size(1);
}

/// Labels an image that is no larger than a block.
at::Tensor LabelBlocks::whole() {
  const at::Tensor all = columns_[0].values.transpose(0, 1).contiguous();
  return make_(all, Part::whole(all)).unsqueeze(0);
}

int64_t LabelBlocks::work_bytes() const {
  int64_t bytes = bytes_per_voxel_;
  for (std::size_t d = 0; d < image_.size(); ++d) bytes *= std::min(image_[d], sizes_.block[d]);
  return bytes;
}

at::Tensor LabelBlocks::add(const at::Tensor& rows) {
  if (taken_ + rows.size(1) > image_[0] ||
      rows.sizes().slice(2) != at::IntArrayRef(image_).slice(1))
    throw DataError("rows of {} voxels, expected those of an image of {}",
                    fmt::join(rows.sizes().slice(1), " x "),
                    fmt::join(image_, " x "));
  const bool is_one =
      std::ranges::all_of(ranges_, [](const auto& axis) { return axis.size() < 2; });
  if (is_one && taken_ == 0 && rows.size(1) == image_[0])
    return make_(rows, Part::whole(rows)).unsqueeze(0);
  std::vector<at::Tensor> given;
  for (int64_t taken = 0; taken < rows.size(1);) {
    const int64_t count = std::min(rows.size(1) - taken, ranges_[0][band_].last - taken_);
    keep(rows.narrow(1, taken, count));
    taken += count;
    for (; band_ < ranges_[0].size() && taken_ >= ranges_[0][band_].last; ++band_) {
      if (is_one) return whole();
      const int64_t lost = ranges_[0][band_].last - labels_.rows.size(0);  // rows before it
      if (given_ < lost) given.push_back(give(lost - given_));
      band();
    }
  }
  if (taken_ == image_[0] && joined_ > 0)
    log::warn("{} objects are longer than {} voxels: their parts were joined where they overlap",
              joined_,
              fmt::join(sizes_.after, ", "));
  given.push_back(give(rows.size(1)));
  return at::cat(given).unsqueeze(0);
}

at::Tensor LabelBlocks::rest() {
  return given_ < ready_ ? give(0).unsqueeze(0) : at::Tensor();
}

/// The next final rows: `count` of them, or more as long as these take little memory.
at::Tensor LabelBlocks::give(int64_t count) {
  constexpr int64_t kVoxels = int64_t{1} << 23;
  Block next{{0, 0, given_, given_}};
  int64_t row = 1;  // voxels
  for (std::size_t d = 1; d < image_.size(); ++d) {
    next.push_back({0, 0, 0, image_[d]});
    row *= image_[d];
  }
  given_ = std::min(ready_, given_ + std::max({count, kVoxels / row, int64_t{1}}));
  next[0].last = given_;
  at::Tensor rows = at::cat(parts_of(labels_.rows, next));
  int32_t* const label = rows.mutable_data_ptr<int32_t>();
  std::transform(label, label + rows.numel(), label, [this](int32_t object) {
    return numbers_[static_cast<std::size_t>(object)];
  });
  return rows;
}

/// Labels a row of blocks, whose inner rows are final then.
void LabelBlocks::band() {
  const Range& rows = ranges_[0][band_];
  for (int64_t row = band_ == 0 ? rows.first : ranges_[0][band_ - 1].last; row < rows.last; ++row)
    labels_.rows.select(0, row % labels_.rows.size(0)).zero_();
  for (const Column& column : columns_) label(column);
  std::ranges::sort(new_);
  for (const auto& [voxel, object] : new_) numbers_[static_cast<std::size_t>(object)] = ++count_;
  new_.clear();
  ready_ = rows.end;
}

/// Which object each of a block's labels is: one that is there, a new one, or 0: none of this
/// block.
std::vector<int32_t> LabelBlocks::objects_of(const at::Tensor& found,
                                             const at::Tensor& known,
                                             const Block& block) {
  const int32_t* const label = found.const_data_ptr<int32_t>();
  const int32_t* const object = known.const_data_ptr<int32_t>();
  const auto boxes = boxes_of<int32_t>(as_volume(found, at::kInt));
  std::vector<int64_t> sizes(boxes.empty() ? 1 : static_cast<std::size_t>(boxes.back().first) + 1);
  std::vector<std::unordered_map<int32_t, int64_t>> shared(sizes.size());
  std::unordered_map<int32_t, int64_t> seen;  // voxels of known objects
  for (int64_t v = 0; v < found.numel(); ++v) {
    const auto own = static_cast<std::size_t>(label[v]);
    ++sizes[own];
    if (object[v] == 0) continue;
    ++seen[object[v]];
    if (own != 0) ++shared[own][object[v]];
  }
  std::vector<int32_t> objects(sizes.size(), 0);
  for (const auto& [number, box] : boxes) {
    const auto own = static_cast<std::size_t>(number);
    std::pair<int64_t, int32_t> most{0, 0};
    for (const auto& [other, voxels] : shared[own]) most = std::max(most, {voxels, -other});
    const auto& [voxels, negative] = most;  // the first of equal ones
    const bool goes_on = is_open_[static_cast<std::size_t>(-negative)];
    if (2 * voxels >= sizes[own] || (goes_on && 2 * voxels >= seen[-negative])) {
      objects[own] = goes_on ? -negative : 0;
      continue;
    }
    bool is_of_other = false, is_cut = false;
    for (std::size_t d = 0; d < block.size(); ++d) {
      const std::size_t axis = 3 - block.size() + d;
      const int64_t first = block[d].first + box.first[axis],
                    last = block[d].first + box.last[axis];
      is_of_other = is_of_other || first >= block[d].end || (first == block[d].first && first > 0);
      is_cut = is_cut || (last + 1 == block[d].last && last + 1 < image_[d]);
    }
    if (is_of_other) continue;
    if (is_open_.size() > INT32_MAX) throw DataError("more than 2147483647 objects");
    objects[own] = static_cast<int32_t>(is_open_.size());
    is_open_.push_back(is_cut);
    joined_ += is_cut ? 1 : 0;
  }
  numbers_.resize(is_open_.size(), 0);
  return objects;
}

/// The values (C,...) of the column's block in the band.
at::Tensor LabelBlocks::values_of(const Column& column) const {
  const std::vector<at::Tensor> parts = parts_of(column.values, {ranges_[0][band_]});
  for (const at::Tensor& rows : parts) values_.expect(rows);
  std::vector<int64_t> shape = column.values.transpose(0, 1).sizes().vec();
  shape[1] = ranges_[0][band_].last - ranges_[0][band_].first;
  at::Tensor values = at::empty(shape, column.values.options());
  int64_t row = 0;
  for (const at::Tensor& rows : parts)  // one by one: in the order of the file that may hold them
    for (const at::Tensor& one : rows.unbind(0)) values.select(1, row++).copy_(one);
  return values;
}

void LabelBlocks::label(const Column& column) {
  Block block{ranges_[0][band_]};
  block.insert(block.end(), column.across.begin(), column.across.end());
  Part part{{0, 0, 0}, {1, 1, 1}};
  for (std::size_t d = 0; d < block.size(); ++d) {
    part.first[3 - block.size() + d] = block[d].first;
    part.image[3 - block.size() + d] = image_[d];
  }
  const at::Tensor found = make_(values_of(column), part);
  std::vector<at::Tensor> kept = parts_of(labels_.rows, block);
  Block wide = block;  // runs of a file
  wide.back() = {0, 0, 0, image_.back()};
  for (const at::Tensor& rows : parts_of(labels_.rows, wide)) labels_.expect(rows);
  at::Tensor painted = at::cat(kept);
  const std::size_t before = is_open_.size();
  const std::vector<int32_t> objects = objects_of(found, painted, block);
  std::vector<bool> has_begun(is_open_.size() - before);

  const int32_t* const label = found.const_data_ptr<int32_t>();
  int32_t* const object = painted.mutable_data_ptr<int32_t>();
  const std::vector<int64_t> sides = found.sizes().vec();
  const int64_t per_row = found.numel() / sides[0];
  for (int64_t v = (block[0].begin - block[0].first) * per_row; v < found.numel(); ++v) {
    const int32_t own = objects[static_cast<std::size_t>(label[v])];
    if (own == 0 || object[v] != 0) continue;
    object[v] = own;
    if (static_cast<std::size_t>(own) < before || has_begun[static_cast<std::size_t>(own) - before])
      continue;
    has_begun[static_cast<std::size_t>(own) - before] = true;
    int64_t voxel = 0, rest = v, size = found.numel();
    for (std::size_t d = 0; d < block.size(); ++d) {
      size /= sides[d];
      voxel = voxel * image_[d] + block[d].first + rest / size;
      rest %= size;
    }
    new_.emplace_back(voxel, own);
  }
  int64_t row = 0;
  for (at::Tensor& rows : kept) {
    rows.copy_(painted.narrow(0, row, rows.size(0)));
    row += rows.size(0);
  }
}

at::Tensor labels_by_blocks(const LabelBlocks::Make& make, const at::Tensor& values) {
  LabelBlocks blocks(make, values.sizes().slice(1).vec());
  std::vector<at::Tensor> rows{blocks.add(values)};
  while (rows.back().defined()) rows.push_back(blocks.rest());
  rows.pop_back();
  return rows.size() == 1 ? rows[0][0] : at::cat(rows, 1)[0];
}

}  // namespace cytra::ops
