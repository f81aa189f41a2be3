#pragma once
// A target for a parser of files: every input is a file, in memory, whose promises must hold.
#include "base/log.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/io/hostile.h"

namespace cytra::fuzz {

/// `check` as those of tests/io/hostile.h, on NAME with these bytes.
template <class Check>
int run_file(const char* name, std::string_view bytes, const Check& check) {
  static const Folder folder;
  log::set_level(log::Level::error);
  const std::string path = folder.path + "/" + name;
  put(path, bytes);
  const std::string found = check(path);
  require(found.empty(), found.c_str());
  return 0;
}

inline int run_image(const char* name, const uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return run_file(
      name, bytes, [&](const std::string& path) { return io::check_image(path, size); });
}

}  // namespace cytra::fuzz
