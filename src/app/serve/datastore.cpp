#include "app/serve/datastore.h"

#include <algorithm>
#include <filesystem>

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

std::map<std::string, std::string> images_in(const std::string& folder) {
  std::map<std::string, std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string path = entry.path().string();
    const bool is_hidden = starts_with(entry.path().filename().string(), ".");
    if (!is_hidden && entry.is_regular_file(ignored) && io::format_of_name(path) != nullptr)
      found.emplace(io::stem_of(path), path);
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
  for (const auto& [id, path] : labels("final")) open.erase(id);
  return open;
}

std::map<std::string, int64_t> Datastore::tags() const {
  std::map<std::string, int64_t> tags;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_ + "/labels", ignored)) {
    if (entry.is_directory(ignored))
      tags.emplace(entry.path().filename().string(),
                   static_cast<int64_t>(images_in(entry.path().string()).size()));
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
  for (const auto& [other, file] : images_in(folder))  // of another format
    if (other == id && file != path) remove_file(file);
}

void Datastore::remove_image(const std::string& id) const {
  remove_file(image(id));
}

void Datastore::remove_label(const std::string& id, const std::string& tag) const {
  remove_file(label(id, tag));
}

}  // namespace cytra::app
