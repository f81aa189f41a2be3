#pragma once
// What tests share that compare files with what a Python reader made of them (cases.json).
#include <string>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "tests/io/fixture.h"

namespace cytra::io {

inline Selection selection_of(const nlohmann::json& entry) {
  Selection selection;
  selection.scene = entry.value("scene", -1);
  selection.timepoint = entry.value("timepoint", -1);
  return selection;
}
inline uint32_t crc_of(const Image& image) {
  return static_cast<uint32_t>(
      ::crc32(0, image.pixels.data(), static_cast<uInt>(image.pixels.size())));
}
inline std::string error_of(const std::string& path) {
  return message_of<DataError>([&] { read_image(path); });
}

}  // namespace cytra::io
