// Reads WebP, lossy and lossless: one image. Source: Google's WebP Container Specification.
#include <webp/decode.h>

#include "base/error.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

[[noreturn]] void fail_webp(const std::string& path, const std::string& what) {
  throw DataError(path + ": the WebP " + what +
                  ", expected a complete one; the file may be damaged: copy or save it again");
}

ImageInfo info_of_webp(const std::string& path, const std::string& bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), &features) !=
      VP8_STATUS_OK)
    fail_webp(path, "has no header that can be read");
  if (features.has_animation != 0) {
    throw DataError(path +
                    ": an animation of several images, expected one; save each image as PNG "
                    "(magick in.webp out_%03d.png)");
  }
  ImageInfo info;
  info.shape = {3, 1, features.height, features.width};
  check_shape(path, info.shape, Dtype::u8, bytes.size());
  return info;
}

Image decode_webp(const std::string& path, const std::string& bytes) {
  Image image;
  allocate(path, info_of_webp(path, bytes).shape, bytes.size(), image);
  const int64_t count = image.shape[2] * image.shape[3];
  check_memory(path, "the image", 7.0 * static_cast<double>(count));  // the library's
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const std::unique_ptr<uint8_t, void (*)(void*)> pixels(
      WebPDecodeRGB(data, bytes.size(), nullptr, nullptr), WebPFree);
  if (!pixels) fail_webp(path, "can't be decoded");
  deinterleave(pixels.get(), count, 1, channels_of(image));
  return image;
}

bool is_webp(const std::string& head, const std::string&) {
  return head.compare(0, 4, "RIFF") == 0 && head.size() > 12 && head.compare(8, 4, "WEBP") == 0;
}

std::unique_ptr<ImageReader> open_webp(const std::string& path, const Selection& selection) {
  const auto bytes = std::make_shared<std::string>(read_input(path));
  return std::make_unique<WholeReader>(path, info_of_webp(path, *bytes), selection, [path, bytes] {
    return decode_webp(path, *bytes);
  });
}

const bool webp_is_known = add_format("webp", [](Format& webp) {
  webp.title = "WebP";
  webp.rank = 87;
  webp.endings = {".webp"};
  webp.media_type = "image/webp";
  webp.probe = is_webp;
  webp.open = open_webp;
  webp.written_as = "png";
});

}  // namespace

}  // namespace cytra::io
