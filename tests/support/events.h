#pragma once
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files.h"
#include "io/compression/crc32c.h"
#include "io/events/event_file.h"

namespace cytra::test {

/// The data of each whole record of an event file. Throws: std::runtime_error for a wrong checksum.
inline std::vector<std::string> records_of(const std::string& file) {
  const auto number = [&](std::size_t at, auto value) {
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  };
  const auto check = [&](std::size_t at, std::size_t size) {
    const uint32_t crc = io::crc32c(std::string_view(file).substr(at, size));
    if (number(at + size, uint32_t{}) != ((crc >> 15) | (crc << 17)) + 0xA282EAD8U)
      throw std::runtime_error("a wrong checksum at " + std::to_string(at));
  };
  std::vector<std::string> records;
  for (std::size_t at = 0; file.size() - at >= 12;) {
    check(at, 8);
    const auto size = static_cast<std::size_t>(number(at, uint64_t{}));
    if (file.size() - at < 16 + size) break;
    check(at + 12, size);
    records.push_back(file.substr(at + 12, size));
    at += 16 + size;
  }
  return records;
}

/// The only file of a folder.
inline std::string only_file(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return files->path().string();
}

}  // namespace cytra::test
