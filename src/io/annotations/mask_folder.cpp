// Part of io/annotations/formats.h: one mask file for each object of an image, in a folder, as for
// the nuclei of DSB 2018, or named by a number, a_1.png, a_2.png.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/annotations/formats.h"
#include "io/annotations/shapes.h"
#include "io/reader.h"

namespace cytra::io {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostMasks = 65535;  // of one image

/// The object in a mask: 1 where it is not 0, plane by plane. Throws: DataError for a mask of
/// several values.
std::vector<unsigned char> object_in(const std::string& path, const Image& mask) {
  const std::size_t bytes = size_of(mask.dtype);
  const auto voxels = static_cast<std::size_t>(mask.count() / mask.shape[0]);
  const std::vector<unsigned char> nothing(bytes);
  std::vector<unsigned char> inside(voxels);
  const unsigned char* value = nullptr;
  for (std::size_t i = 0; i < voxels; ++i) {
    const unsigned char* own = mask.pixels.data() + i * bytes;
    for (int64_t channel = 1; channel < mask.shape[0]; ++channel) {
      const unsigned char* other = own + static_cast<std::size_t>(channel) * voxels * bytes;
      if (std::memcmp(own, other, bytes) != 0)
        throw DataError(path + ": colours, expected a mask: 0 and one other value");
    }
    if (std::memcmp(own, nothing.data(), bytes) == 0) continue;
    if (value == nullptr) value = own;
    if (std::memcmp(own, value, bytes) != 0) {
      throw DataError(path +
                      ": several values other than 0, expected the mask of one object, as its "
                      "folder has a file for each: 0 and one other value; label images are read "
                      "where each image has one file");
    }
    inside[i] = 1;
  }
  return inside;
}

}  // namespace

std::vector<Annotation> read_mask_folder(const std::string& folder, const AnnotatedImage& image) {
  std::vector<std::string> files = mask_files(folder);
  const fs::path own = fs::path(image.path).lexically_normal();
  std::erase_if(files, [&](const auto& file) { return fs::path(file).lexically_normal() == own; });
  if (files.size() > kMostMasks) {
    throw DataError("{}: {} masks, expected at most {} objects", folder, files.size(), kMostMasks);
  }
  std::vector<Annotation> objects;
  for (const std::string& file : files) {
    const Image mask = read_image(file);
    const auto& [channels, depth, height, width] = mask.shape;
    if (depth != image.depth || height != image.height || width != image.width) {
      throw DataError("{}: {} x {} x {} voxels, expected the size of {}: {} x {} x {}",
                      file,
                      depth,
                      height,
                      width,
                      image.path,
                      image.depth,
                      image.height,
                      image.width);
    }
    const std::vector<unsigned char> inside = object_in(file, mask);
    for (int64_t z = 0; z < depth; ++z) {
      const unsigned char* plane = inside.data() + z * height * width;
      if (std::find(plane, plane + height * width, 1) == plane + height * width) continue;
      Annotation object;
      object.name = fs::path(file).filename().string();
      if (depth > 1) object.plane = z;
      object.masks.push_back(encode_rle(plane, height, width));
      object.box = box_around(object);
      objects.push_back(std::move(object));
    }
  }
  return objects;
}

}  // namespace cytra::io
