#pragma once
// What the tests of data modules share.
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/datamodule.h"

namespace cytra {

inline std::shared_ptr<data::DataModule> make(const std::string& text) {
  return make<data::DataModule>(text);
}

inline void touch(const std::string& path, const std::string& text = "x") {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

/// Of a mistake of the user's.
inline std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error), 2);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace cytra
