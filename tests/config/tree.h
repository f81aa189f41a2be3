#pragma once
// A folder of config files that lives as long as the test.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "tests/support/message_of.h"

namespace cytra::config {

class Tree {
 public:
  Tree() {
    std::string name = (std::filesystem::temp_directory_path() / "cytra_config_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~Tree() { std::filesystem::remove_all(folder_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace cytra::config
