#pragma once
#include <filesystem>
#include <string>

#include <stdlib.h>

namespace cytra::test {

/// A folder of its own, removed with all it holds.
class TmpDir {
 public:
  TmpDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cytra test XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TmpDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TmpDir(const TmpDir&) = delete;
  TmpDir& operator=(const TmpDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace cytra::test
