#include "data/sample/sample.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "data/sample/image_tensor.h"
#include "data/sample/pad_crop.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data {

const std::vector<std::string> kMismatches{"error", "resample", "ignore"};

Mismatch mismatch_of(const std::string& name) {
  return static_cast<Mismatch>(std::ranges::find(kMismatches, name) - kMismatches.begin());
}

at::Tensor& Sample::at(const std::string& key) {
  at::Tensor& tensor = stored(key);
  if (tensor.scalar_type() != at::kFloat) tensor = tensor.to(at::kFloat);
  return tensor;
}

at::Tensor& Sample::stored(const std::string& key) {
  const auto waiting = unread.find(key);
  if (waiting != unread.end()) {
    tensors[key] = read_tensor(waiting->second);
    unread.erase(waiting);
  }
  const auto place = tensors.find(key);
  if (place == tensors.end()) throw_missing(tensors, key, id);
  return place->second;
}

const std::string& Sample::file_of(const std::string& key) const {
  const auto source = sources.find(key);
  return source == sources.end() || source->second.path.empty() ? id : source->second.path;
}

const io::Geometry& Sample::geometry() const {
  static const io::Geometry unknown;
  if (geometries.empty()) return unknown;
  const auto own = geometries.find(image);
  return (own == geometries.end() ? geometries.begin() : own)->second;
}

void expect_channels(Sample& sample, const std::string& key, int64_t channels) {
  const int64_t own = sample.at(key).size(0);
  if (own == channels) return;
  throw DataError(
      "{}: {} channels, the model expects {} (set raw_im_channels, or choose some with "
      "LoadImaged's channel)",
      sample.id,
      own,
      channels);
}

bool take_colours(const Transforms& transforms) {
  return std::ranges::any_of(transforms, [](const auto& one) { return one->takes_colours(); });
}

void expect_no_copies(const Sample& sample) {
  const auto image = sample.sources.find(sample.image);
  const auto pixels = sample.tensors.find(sample.image);
  if (image == sample.sources.end() || pixels == sample.tensors.end()) return;
  const std::string& path = image->second.path;
  for (const auto& [key, tensor] : sample.tensors) {
    const auto own = sample.sources.find(key);
    if (key == sample.image || own == sample.sources.end()) continue;
    const bool is_same_file = own->second.path == path || are_same_file(own->second.path, path);
    // Grey that is saved in colours may be one channel here, and three there.
    const at::Tensor one = tensor.slice(0, 0, 1), other = pixels->second.slice(0, 0, 1);
    if (!is_same_file || one.sizes() != other.sizes() || !one.eq(other).all().item<bool>())
      continue;
    throw DataError("{}: '{}' is the image itself, expected masks, labels or annotations of it",
                    own->second.path,
                    key);
  }
}

std::vector<int64_t> Sample::size(const std::string& key) {
  const auto waiting = unread.find(key);
  if (waiting == unread.end()) return stored(key).sizes().slice(1).vec();
  const auto& size = waiting->second.region.size;
  return {size.end() - waiting->second.spatial_dims, size.end()};
}

void Sample::crop(const std::string& key,
                  const std::vector<int64_t>& start,
                  const std::vector<int64_t>& size) {
  const auto place = geometries.find(key);
  if (place != geometries.end())
    spatial::move_voxels(place->second, {}, {start.begin(), start.end()});
  const auto waiting = unread.find(key);
  if (waiting == unread.end()) {
    at::Tensor& image = stored(key);
    image = spatial::crop(image, start, size);
    return;
  }
  io::Region& region = waiting->second.region;
  for (std::size_t d = 0; d < start.size(); ++d) {
    const std::size_t axis = 3 - start.size() + d;
    const int64_t begin = std::clamp<int64_t>(start[d], 0, region.size[axis]);
    const int64_t end = std::clamp<int64_t>(start[d] + size[d], begin, region.size[axis]);
    region.begin[axis] += begin;
    region.size[axis] = end - begin;
  }
}

void throw_missing(const std::map<std::string, at::Tensor>& tensors,
                   const std::string& key,
                   const std::string& id) {
  throw DataError(id + ": no image under the key '" + key + "'." +
                  suggestion(key, keys_of(tensors)));
}

}  // namespace cytra::data
