#include "data/loader/batch.h"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/sample/pad_crop.h"
#include "data/sample/sample.h"

namespace cytra::data {
namespace {

at::MemoryFormat format_of(std::size_t dims, const BatchLayout& layout) {
  if (layout.channels_last && dims == 4) return at::MemoryFormat::ChannelsLast;
  if (layout.channels_last && dims == 5) return at::MemoryFormat::ChannelsLast3d;
  return at::MemoryFormat::Contiguous;
}

[[noreturn]] void throw_differs(const std::string& id,
                                const std::string& key,
                                at::IntArrayRef sizes,
                                const std::string& other,
                                at::IntArrayRef others) {
  const bool is_size = sizes.size() == others.size() && sizes[0] == others[0];
  throw DataError("{}: '{}' is {}, that of {} in the same batch is {}; {}",
                  id,
                  key,
                  fmt::join(sizes, "x"),
                  other,
                  fmt::join(others, "x"),
                  is_size ? "crop to one size, or set data.batch_size=1 or data.collate=pad"
                          : "expected the same channels and dimensions: leave one of them out");
}

/// Pads images with 0 to the largest size among them.
std::vector<at::Tensor> padded(std::vector<at::Tensor> images,
                               const std::string& key,
                               const std::vector<std::string>& ids) {
  std::vector<int64_t> most = images.front().sizes().vec();
  for (std::size_t i = 0; i < images.size(); ++i) {
    const at::Tensor& image = images[i];
    if (image.dim() != images.front().dim() || image.size(0) != most[0])
      throw_differs(ids[i], key, image.sizes(), ids.front(), images.front().sizes());
    for (std::size_t d = 0; d < most.size(); ++d)
      most[d] = std::max(most[d], image.size(static_cast<int64_t>(d)));
  }
  const std::vector<int64_t> size(most.begin() + 1, most.end());
  for (at::Tensor& image : images)
    image =
        spatial::pad(image, spatial::widths_to(image.sizes().slice(1), size, false), "constant", 0);
  return images;
}

}  // namespace

const at::Tensor& Batch::at(const std::string& key) const {
  const auto place = tensors.find(key);
  if (place == tensors.end()) throw_missing(tensors, key, ids.empty() ? "" : ids.front());
  return place->second;
}

at::Tensor BatchMemory::take(at::IntArrayRef sizes, const BatchLayout& layout) {
  const std::lock_guard lock(mutex_);
  const auto format = format_of(sizes.size(), layout);
  const auto is_free = [](const at::Tensor& tensor) { return tensor.storage().use_count() == 1; };
  for (const at::Tensor& tensor : kept_) {
    // alias(): the batch holds the storage, and its uses are counted
    if (is_free(tensor) && tensor.sizes() == sizes && tensor.is_contiguous(format))
      return tensor.alias();
  }
  std::erase_if(kept_, is_free);
  const at::Tensor tensor =
      at::empty(sizes, at::TensorOptions(at::kFloat).pinned_memory(layout.pin), format);
  if (kept_.size() < most_) kept_.push_back(tensor);
  return tensor.alias();
}

namespace {

/// Whether each image is copied when it is set. A single image is its own batch, unless that has
/// to be page-locked.
bool are_copied(const BatchLayout& layout, std::size_t rows) {
  return layout.collate == Collate::stack && (rows > 1 || layout.pin);
}

}  // namespace

/// The data of a row, besides its images.
struct BatchBuilder::Row {
  bool is_set = false;
  bool is_first = false;  // its image gave the batch its sizes; guarded by the mutex
  std::string id;
  io::Geometry geometry;
  uint64_t key = 0;
  std::map<std::string, at::Tensor> images;  // until they are gathered, if they are not copied yet
};

BatchBuilder::BatchBuilder(int64_t rows, const BatchLayout& layout, BatchMemory& memory)
    : layout_(layout), memory_(memory), rows_(static_cast<std::size_t>(rows)) {}
BatchBuilder::~BatchBuilder() = default;

void BatchBuilder::set(int64_t row, Sample sample, uint64_t key) {
  Row& place = rows_[static_cast<std::size_t>(row)];
  place.id = sample.id;
  place.geometry = sample.geometry();
  place.key = key;
  if (are_copied(layout_, rows_.size())) {
    copy(row, sample);
  } else {
    for (auto& [name, image] : sample.tensors) {
      // A batch is its owner's to change: memory that a cache, or another image, has is copied,
      // and so is what torch did not allocate, as the mapped file of a cache.
      at::Tensor own = image.to(at::kFloat);
      const auto users = own.is_same(image) ? 2U : 1U;
      const c10::Storage& storage = own.storage();
      if (own.use_count() > users || storage.use_count() > 1 || !storage.resizable())
        own = own.clone();
      place.images[name] = std::move(own);
    }
  }
  place.is_set = true;
}

void BatchBuilder::copy(int64_t row, Sample& sample) {
  std::string first;  // the image whose size the others must have
  {
    const std::lock_guard lock(mutex_);
    if (tensors_.empty()) {
      rows_[static_cast<std::size_t>(row)].is_first = true;
      for (const auto& [key, image] : sample.tensors) {
        std::vector<int64_t> sizes = image.sizes().vec();
        sizes.insert(sizes.begin(), std::ssize(rows_));
        tensors_[key] = memory_.take(sizes, layout_);
      }
    }
    for (const Row& other : rows_) {
      if (other.is_first) first = other.id;
    }
  }
  if (sample.tensors.size() != tensors_.size()) {
    throw DataError("{}: {} images, {} of the same batch has {}; expected the same keys",
                    sample.id,
                    sample.tensors.size(),
                    first,
                    tensors_.size());
  }
  for (const auto& [key, rows] : tensors_) {
    const at::Tensor& image = sample.stored(key);
    if (image.sizes() != rows.sizes().slice(1))
      throw_differs(sample.id, key, image.sizes(), first, rows.sizes().slice(1));
    if (image.scalar_type() == at::kFloat && image.is_contiguous() && rows.is_contiguous()) {
      const std::size_t bytes = image.nbytes();
      std::memcpy(static_cast<char*>(rows.data_ptr()) + static_cast<std::size_t>(row) * bytes,
                  image.const_data_ptr(),
                  bytes);
    } else {
      rows.select(0, row).copy_(image);
    }
  }
}

/// Makes the batch from rows that were not copied yet.
void BatchBuilder::gather(Batch& batch) {
  std::map<std::string, std::vector<at::Tensor>> images;
  std::size_t count = 0;
  for (Row& row : rows_) {
    if (!row.is_set) continue;
    ++count;
    for (auto& [key, image] : row.images) images[key].push_back(std::move(image));
    row.images.clear();
  }
  for (auto& [key, list] : images) {
    if (list.size() != count)
      throw DataError(batch.ids.front() + ": '" + key +
                      "' is not there in all samples of the batch");
    if (layout_.collate == Collate::list) {
      for (at::Tensor& image : list) {
        if (layout_.pin) image = image.pin_memory();
      }
      batch.lists[key] = std::move(list);
      continue;
    }
    list = padded(std::move(list), key, batch.ids);
    at::Tensor rows = list.size() == 1 ? list[0].unsqueeze(0) : at::stack(list);
    rows = rows.contiguous(format_of(static_cast<std::size_t>(rows.dim()), layout_));
    batch.tensors[key] = layout_.pin ? rows.pin_memory() : rows;
  }
}

Batch BatchBuilder::finish() {
  Batch batch;
  std::vector<int64_t> set;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    if (!row.is_set) continue;
    set.push_back(static_cast<int64_t>(r));
    batch.ids.push_back(std::move(row.id));
    batch.geometries.push_back(row.geometry);
    batch.keys.push_back(row.key);
  }
  if (!are_copied(layout_, rows_.size())) {
    if (!set.empty()) gather(batch);
    return batch;
  }
  batch.tensors = std::move(tensors_);
  if (set.size() < rows_.size()) {
    for (auto& [key, rows] : batch.tensors) {
      rows = rows.index_select(0, at::tensor(set, at::kLong))
                 .contiguous(format_of(static_cast<std::size_t>(rows.dim()), layout_));
      if (layout_.pin) rows = rows.pin_memory();
    }
  }
  return batch;
}

Batch collate(std::vector<Sample> samples, const BatchLayout& layout) {
  BatchMemory memory(0);
  BatchBuilder builder(std::ssize(samples), layout, memory);
  for (std::size_t i = 0; i < samples.size(); ++i)
    builder.set(static_cast<int64_t>(i), std::move(samples[i]), 0);
  return builder.finish();
}

}  // namespace cytra::data
