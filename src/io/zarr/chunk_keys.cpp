// Part of io/zarr/meta.h: checks whether the chunks are where the metadata say.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/warn_once.h"
#include "io/zarr/meta.h"

namespace cytra::io {
namespace fs = std::filesystem;
namespace {

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 16 && std::ranges::all_of(text, is_digit);
}

/// Whether a key is numbers between dots and slashes, perhaps after a "c".
bool is_like_chunk(std::string key) {
  std::ranges::replace(key, '/', '.');
  std::vector<std::string> parts = split(key, '.');
  if (parts[0] == "c") parts.erase(parts.begin());
  return !parts.empty() && std::ranges::all_of(parts, is_index);
}

/// Whether `key` is that of a chunk within the array, by the prefix and separator of `meta`.
bool is_chunk(const std::string& key, const ZarrMeta& meta) {
  std::vector<std::string> parts = split(key, meta.separator);
  if (!meta.key_prefix.empty()) {
    if (parts[0] != meta.key_prefix) return false;
    parts.erase(parts.begin());
  }
  if (parts.size() != meta.rank) return false;
  for (std::size_t i = 0; i < meta.rank; ++i) {
    if (!is_index(parts[i]) || std::stoll(parts[i]) > (meta.shape[i] - 1) / meta.chunk[i])
      return false;
  }
  return true;
}

/// Advice what to change in the metadata so that this chunk is found.
std::string remedy(const std::string& key, bool is_v3, ZarrMeta meta) {
  for (const char* prefix : {"", "c"}) {
    for (const char separator : {'.', '/'}) {
      meta.key_prefix = prefix;
      meta.separator = separator;
      if (!is_chunk(key, meta)) continue;
      if (is_v3) {
        return fmt::format(
            "write \"chunk_key_encoding\": {{\"name\": \"{}\", \"configuration\": "
            "{{\"separator\": \"{}\"}}}} into zarr.json",
            *prefix == '\0' ? "v2" : "default",
            separator);
      }
      if (*prefix == '\0')
        return fmt::format("write \"dimension_separator\": \"{}\" into .zarray", separator);
    }
  }
  return "copy the array again, its metadata are those of another";
}

}  // namespace

void check_chunk_keys(const ZarrStore& store, const std::string& array, const ZarrMeta& meta) {
  const std::string folder = store.path_of(array);
  std::string other;
  std::error_code error;
  fs::recursive_directory_iterator entries(
      folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const std::string key = entries->path().lexically_relative(folder).generic_string();
    if (!is_like_chunk(key) && key != "c") {
      entries.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (entries->is_directory(ignored)) {
      if (entries->is_symlink(ignored)) return;  // its target is read or refused later
      continue;
    }
    if (is_chunk(key, meta)) return;
    if (other.empty() || key < other) other = key;
  }
  if (other.empty()) {
    warn_once(folder +
              ": no chunk is there, so all voxels are the fill value; the copy may be incomplete");
    return;
  }
  throw DataError("{}: no chunk has a name that its metadata give ({}, ...), but {} is there; {}",
                  folder,
                  meta.chunk_key({}),
                  other,
                  remedy(other, store.has(store.join(array, "zarr.json")), meta));
}

}  // namespace cytra::io
