#include "io/grey.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace cytra::io {
namespace {

bool has_colours(int64_t channels) {
  return channels == 3 || channels == 4;
}

class GreyReader final : public ImageReader {
 public:
  GreyReader(std::shared_ptr<const ImageReader> colours, std::string path)
      : colours_(std::move(colours)), path_(std::move(path)) {
    info_ = colours_->info();
    info_.shape[0] = 1;
    info_.channel_names.clear();
  }
  Image read(const Region& region) const override {
    Image image = colours_->read(region);
    if (make_grey(image, path_)) return image;
    throw DataError(
        "{}: {} channels that differ, the model expects 1: save one of them as grey, or choose it "
        "by "
        "a table's column `channel`",
        path_,
        image.shape[0]);
  }

 private:
  std::shared_ptr<const ImageReader> colours_;
  std::string path_;
};

}  // namespace

bool make_grey(Image& image, const std::string& path) {
  if (!has_colours(image.shape[0])) return false;
  const std::size_t plane = image.bytes() / static_cast<std::size_t>(image.shape[0]);
  const unsigned char *red = image.pixels.data(), *alpha = red + 3 * plane;
  const std::size_t sample = size_of(image.dtype);
  if (std::memcmp(red, red + plane, plane) != 0 || std::memcmp(red, red + 2 * plane, plane) != 0 ||
      (image.shape[0] == 4 && std::memcmp(alpha, alpha + sample, plane - sample) != 0))
    return false;
  image.pixels.resize(plane);
  image.shape[0] = 1;
  image.channel_names.clear();
  static std::atomic<bool> is_told{false};
  if (!is_told.exchange(true)) {
    log::info("{}: red, green and blue are equal: it, and others like it, are read as grey", path);
  }
  return true;
}

std::shared_ptr<const ImageReader> grey_of(std::shared_ptr<const ImageReader> reader,
                                           const std::string& path) {
  if (!has_colours(reader->info().shape[0])) return reader;
  return std::make_shared<GreyReader>(std::move(reader), path);
}

}  // namespace cytra::io
