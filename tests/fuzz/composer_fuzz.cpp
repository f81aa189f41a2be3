// Trees of files and a command line: lines "@@ name" begin a file, lines before the first are
// overrides.
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/composer.h"
#include "config/run_config.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace cytra;

bool is_name(const std::string& name) {
  return !name.empty() && name.size() < 60 && name[0] != '/' &&
         name.find("..") == std::string::npos &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_/") == std::string::npos;
}

void write(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  fuzz::put(path, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  log::set_level(log::Level::error);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path, error))
    std::filesystem::remove_all(entry.path(), error);
  std::vector<std::string> overrides;
  std::string name, text;
  const auto end_file = [&] {
    if (is_name(name)) write(folder.path + "/" + name + ".yaml", text);
    text.clear();
  };
  int files = 0;
  for (const std::string& line :
       split(std::string(reinterpret_cast<const char*>(data), size), '\n')) {
    if (line.starts_with("@@ ") && ++files <= 12) {
      end_file();
      name = line.substr(3);
    } else if (name.empty()) {
      if (!line.empty() && overrides.size() < 8) overrides.push_back(line);
    } else {
      text += line + "\n";
    }
  }
  end_file();
  const config::Composer composer({folder.path});
  fuzz::run([&] {
    config::Composition composition = composer.load("config", overrides);
    config::to_yaml(composition.root);
    config::set_output_dir(composition.root);
    config::job_config(std::move(composition.root));
  });
  fuzz::run([&] { composer.load("config", overrides, true); });
  return 0;
}
