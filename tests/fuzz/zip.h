#pragma once
// ZIP archives whose files are stored as they are, without their checksums.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cytra::fuzz {

inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string bytes, directory;
  const auto add = [](std::string& to, uint64_t value, int count) {
    for (; count > 0; --count, value >>= 8) to += static_cast<char>(value & 255);
  };
  for (const auto& [name, content] : files) {
    const std::size_t at = bytes.size();
    for (std::string* to : {&bytes, &directory}) {
      *to += to == &bytes ? "PK\3\4" : "PK\1\2";
      if (to == &directory) add(*to, 20, 2);
      add(*to, 20, 2);
      add(*to, 0, 12);  // flags, method, time, checksum
      add(*to, content.size(), 4);
      add(*to, content.size(), 4);
      add(*to, name.size(), 2);
      add(*to, 0, 2);
    }
    add(directory, 0, 10);  // comment, disk, attributes
    add(directory, at, 4);
    bytes += name + content;
    directory += name;
  }
  const std::size_t at = bytes.size();
  bytes += directory + std::string("PK\5\6\0\0\0\0", 8);
  add(bytes, files.size(), 2);
  add(bytes, files.size(), 2);
  add(bytes, directory.size(), 4);
  add(bytes, at, 4);
  add(bytes, 0, 2);
  return bytes;
}

}  // namespace cytra::fuzz
