#pragma once
// Files in memory, for targets that read them.
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include <unistd.h>

namespace cytra::fuzz {

/// A folder in memory that ends with the process.
struct Folder {
  std::string path = "/dev/shm/cytra_fuzz_" + std::to_string(::getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

inline void put(const std::string& path, std::string_view bytes) {
  if (std::FILE* file = std::fopen(path.c_str(), "wb")) {
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
}

}  // namespace cytra::fuzz
