// A Zarr array of one chunk: its metadata, of either version, up to a line "@@", then the chunk.
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace cytra;
  static const fuzz::Folder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(bytes.find("\n@@\n"), size);
  const std::string_view metadata = bytes.substr(0, end),
                         chunk = bytes.substr(std::min(end + 4, size));
  const bool is_v3 = metadata.find("node_type") != std::string_view::npos;
  const std::string path = folder.path + "/a.zarr";
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  std::filesystem::create_directories(path + "/c/0/0", ignored);
  fuzz::put(path + (is_v3 ? "/zarr.json" : "/.zarray"), metadata);
  fuzz::put(path + (is_v3 ? "/c/0/0/0" : "/0.0.0"), chunk);
  const std::string found = io::check_image(path, size);
  fuzz::require(found.empty(), found.c_str());
  return 0;
}
