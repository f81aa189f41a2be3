#include "app/serve/datastore.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "app/serve/http.h"
#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "io/formats.h"

namespace cytra::app {
namespace fs = std::filesystem;
namespace {

/// Throws: HttpError for a name that is no plain part of a path.
void expect_plain_name(const char* what, const std::string& name) {
  const bool is_fine = !name.empty() && name.size() <= 200 && name.front() != '.' &&
                       std::none_of(name.begin(), name.end(), [](char c) {
                         return is_control(c) || c == '/' || c == '\\' || c == '"';
                       });
  if (!is_fine)
    throw HttpError(
        400, fmt::format("{}: {}: expected a plain name, without a folder", what, printable(name)));
}

std::vector<std::string> image_files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string path = entry.path().string();
    const bool is_hidden = starts_with(entry.path().filename().string(), ".");
    if (!is_hidden && entry.is_regular_file(ignored) && io::format_of_name(path) != nullptr)
      paths.push_back(path);
  }
  return paths;
}

std::map<std::string, std::string> images_in(const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const std::string& path : image_files_in(folder)) {
    const auto [own, is_new] = found.emplace(io::stem_of(path), path);
    if (!is_new)
      throw HttpError(409,
                      fmt::format("{}: {} and {} have one name; expected a single file of it",
                                  folder,
                                  fs::path(std::min(own->second, path)).filename().string(),
                                  fs::path(std::max(own->second, path)).filename().string()));
  }
  return found;
}

/// The ending of an image's name: ".nii.gz".
std::string ending_of(const std::string& filename) {
  const std::string name = fs::path(filename).filename().string();
  if (io::format_of_name(name) == nullptr)
    throw HttpError(415, fmt::format("{}: expected the name of an image", printable(name)));
  return in_small_letters(name.substr(io::stem_of(name).size()));
}

std::string find_file(const std::map<std::string, std::string>& files, const std::string& id) {
  const auto found = files.find(id);
  if (found != files.end()) return found->second;
  throw HttpError(404, fmt::format("{}: there is no such image", printable(id)));
}

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw_errno("can't be removed", path, error.value());
}

}  // namespace

Datastore::Datastore(std::string folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  if (!fs::is_directory(folder_, ignored))
    throw ConfigError("datastore: " + folder_ + ": no such folder of images");
  try {
    images();
  } catch (const HttpError& error) {
    throw ConfigError(std::string("datastore: ") + error.what());
  }
}

std::string Datastore::label_folder(const std::string& tag) const {
  expect_plain_name("tag", tag);
  return folder_ + "/labels/" + tag;
}

std::map<std::string, std::string> Datastore::images() const {
  return images_in(folder_);
}

std::map<std::string, std::string> Datastore::labels(const std::string& tag) const {
  return images_in(label_folder(tag));
}

std::map<std::string, std::string> Datastore::unlabelled() const {
  auto open = images();
  for (const std::string& path : image_files_in(label_folder("final")))
    open.erase(io::stem_of(path));
  return open;
}

std::map<std::string, int64_t> Datastore::tags() const {
  std::map<std::string, int64_t> tags;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_ + "/labels", ignored)) {
    if (entry.is_directory(ignored))
      tags.emplace(entry.path().filename().string(),
                   static_cast<int64_t>(image_files_in(entry.path().string()).size()));
  }
  return tags;
}

std::string Datastore::image(const std::string& id) const {
  return find_file(images(), id);
}

std::string Datastore::label(const std::string& id, const std::string& tag) const {
  return find_file(labels(tag), id);
}

void Datastore::add_image(const std::string& id,
                          const std::string& filename,
                          const std::string& content) const {
  expect_plain_name("image", id);
  const std::string ending = ending_of(filename);
  if (images().count(id) > 0)
    throw HttpError(409, fmt::format("{}: there is such an image already", printable(id)));
  for (const auto& [tag, count] : tags())  // they would be taken for labels of the new image
    for (const std::string& label : image_files_in(label_folder(tag)))
      if (io::stem_of(label) == id)
        throw HttpError(
            409,
            fmt::format("{}: labels/{} still has a label of an image of this name; DELETE "
                        "/datastore/?type=label removes it",
                        printable(id),
                        tag));
  write_file(folder_ + "/" + id + ending, content);
}

void Datastore::save_label(const std::string& id,
                           const std::string& tag,
                           const std::string& filename,
                           const std::string& content) const {
  image(id);
  const std::string folder = label_folder(tag), path = folder + "/" + id + ending_of(filename);
  make_folders(folder);
  own_file(path);  // a corrected label replaces the one before
  write_file(path, content);
  for (const std::string& other : image_files_in(folder))  // of another format
    if (io::stem_of(other) == id && other != path) remove_file(other);
}

void Datastore::remove_image(const std::string& id) const {
  remove_file(image(id));
}

void Datastore::remove_label(const std::string& id, const std::string& tag) const {
  remove_file(label(id, tag));
}

}  // namespace cytra::app
