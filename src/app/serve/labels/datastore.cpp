#include "app/serve/labels/datastore.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>

#include "app/serve/http/http.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "io/formats.h"

namespace cytra::app {
namespace fs = std::filesystem;
namespace {

/// Whether a name is a plain part of a path, and comes out of a table as it went in.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 200 && name.front() != '.' && trim(name) == name &&
         std::ranges::none_of(
             name, [](char c) { return is_control(c) || c == '/' || c == '\\' || c == '"'; });
}

void expect_plain_name(const char* what, const std::string& name) {
  if (!is_plain_name(name))
    throw HttpError(400, "{}: {}: expected a plain name, without a folder", what, printable(name));
}

std::vector<std::string> image_files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), last; entry != last;
       entry.increment(ignored)) {
    const std::string path = entry->path().string();
    const bool is_hidden = entry->path().filename().string().starts_with(".");
    if (!is_hidden && entry->is_regular_file(ignored) && io::format_of_name(path) != nullptr)
      paths.push_back(path);
  }
  return paths;
}

std::string name_in_folder(const std::string& path) {
  return fs::path(path).filename().string();
}

Datastore::Files images_in(const std::string& folder, bool newest_counts) {
  Datastore::Files found;
  std::error_code ignored;
  for (const std::string& path : image_files_in(folder)) {
    const auto [own, is_new] = found.emplace(io::stem_of(path), path);
    if (is_new) continue;
    const auto time = fs::last_write_time(path, ignored),
               other = fs::last_write_time(own->second, ignored);
    if (!newest_counts || time == other)
      throw HttpError(409,
                      "{}: {} and {} have one name; expected a single file of it",
                      folder,
                      name_in_folder(std::min(own->second, path)),
                      name_in_folder(std::max(own->second, path)));
    if (time > other) own->second = path;
  }
  return found;
}

/// The path of a file that is stored, whose ending is that of the client's own name of it. Throws:
/// HttpError where a listing would not find it under its name.
std::string stored_path(const std::string& folder,
                        const std::string& id,
                        const std::string& filename) {
  expect_plain_name("image", id);
  const io::Format* format = io::format_of_name(filename);
  if (format == nullptr || format->are_folders)
    throw HttpError(415, "{}: expected the name of an image", printable(filename));
  const std::string ending = in_small_letters(filename.substr(io::stem_of(filename).size()));
  std::string path = folder + "/" + id + ending;
  if (io::stem_of(path) != id)
    throw HttpError(400,
                    "{}: with {} it is the name of {}; expected another name or format",
                    printable(id),
                    ending,
                    printable(io::stem_of(path)));
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);  // a link may lead to nothing
  if (fs::exists(there) && !fs::is_regular_file(path, ignored))
    throw HttpError(409, "{}: is no file", printable(id + ending));
  return path;
}

std::string find_file(const Datastore::Files& files, const std::string& id) {
  const auto found = files.find(id);
  if (found != files.end()) return found->second;
  throw HttpError(404, "{}: there is no such image", printable(id));
}

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw_errno("can't be removed", path, error.value());
}

}  // namespace

/// Holds the folder for a look and what follows from it.
class Datastore::Hold {
 public:
  explicit Hold(const Datastore& store)
      : lock_(store.mutex_),
        descriptor_(::open(store.folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    ::flock(descriptor_.get(), LOCK_EX);  // in vain where the disk has no locks
  }

 private:
  const std::lock_guard<std::mutex> lock_;
  const Descriptor descriptor_;
};

Datastore::Datastore(std::string folder) : folder_(std::move(folder)) {
  if (!folder_exists(folder_))
    throw ConfigError("datastore: " + folder_ + ": no such folder of images");
  try {
    images();
  } catch (const HttpError& error) {
    throw ConfigError(std::string("datastore: ") + error.what());
  }
  remove_stale_temporaries(folder_);
  for (const auto& [tag, count] : tags()) remove_stale_temporaries(label_folder(tag));
}

std::string Datastore::label_folder(const std::string& tag) const {
  expect_plain_name("tag", tag);
  return folder_ + "/labels/" + tag;
}

Datastore::Files Datastore::images() const {
  const Hold hold(*this);
  return images_in(folder_, false);
}

Datastore::Files Datastore::labels(const std::string& tag) const {
  const Hold hold(*this);
  return images_in(label_folder(tag), true);
}

Datastore::Files Datastore::unlabelled() const {
  const Hold hold(*this);
  Files open = images_in(folder_, false);
  for (const std::string& path : image_files_in(label_folder("final")))
    open.erase(io::stem_of(path));
  return open;
}

std::map<std::string, std::pair<std::string, std::string>> Datastore::labelled() const {
  const Hold hold(*this);
  const Files images = images_in(folder_, false);
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [id, label] : images_in(label_folder("final"), true))
    if (const auto image = images.find(id); image != images.end())
      both.emplace(id, std::pair(image->second, label));
  return both;
}

std::map<std::string, int64_t> Datastore::tags() const {
  std::map<std::string, int64_t> tags;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder_ + "/labels", ignored), last; entry != last;
       entry.increment(ignored)) {
    const std::string tag = entry->path().filename().string();
    if (is_plain_name(tag) && entry->is_directory(ignored))
      tags.emplace(tag, static_cast<int64_t>(image_files_in(entry->path().string()).size()));
  }
  return tags;
}

std::string Datastore::image(const std::string& id) const {
  return find_file(images(), id);
}

std::pair<std::string, std::string> Datastore::read_image(const std::string& id) const {
  const Hold hold(*this);
  const std::string path = find_file(images_in(folder_, false), id);
  return {path, read_file(path, SIZE_MAX)};
}

std::pair<std::string, std::string> Datastore::read_label(const std::string& id,
                                                          const std::string& tag) const {
  const Hold hold(*this);
  const std::string path = find_file(images_in(label_folder(tag), true), id);
  return {path, read_file(path, SIZE_MAX)};
}

void Datastore::add_image(const std::string& id,
                          const std::string& filename,
                          const std::string& content) const {
  const Hold hold(*this);
  const std::string path = stored_path(folder_, id, filename);
  for (const auto& [other, unused] : images_in(folder_, false))  // one file on disks without case
    if (in_small_letters(other) == in_small_letters(id))
      throw HttpError(409, "{}: there is such an image already: {}", printable(id), other);
  for (const auto& [tag, count] : tags())  // they would be taken for labels of the new image
    for (const std::string& label : image_files_in(label_folder(tag)))
      if (io::stem_of(label) == id)
        throw HttpError(409,
                        "{}: labels/{} still has a label of an image of this name; DELETE "
                        "/datastore/?type=label removes it",
                        printable(id),
                        tag);
  write_file(path, content);
}

void Datastore::save_label(const std::string& id,
                           const std::string& tag,
                           const std::string& filename,
                           const std::string& content) const {
  const Hold hold(*this);
  find_file(images_in(folder_, false), id);
  const std::string folder = label_folder(tag), path = stored_path(folder, id, filename);
  make_folders(folder);
  own_file(path);  // a corrected label replaces the one before
  write_file(path, content);
  for (const std::string& other : image_files_in(folder))  // of another format
    if (io::stem_of(other) == id && other != path &&
        (in_small_letters(other) != in_small_letters(path) ||  // one file on disks without case
         !are_same_file(other, path)))
      remove_file(other);
}

void Datastore::remove_image(const std::string& id) const {
  const Hold hold(*this);
  remove_file(find_file(images_in(folder_, false), id));
}

void Datastore::remove_label(const std::string& id, const std::string& tag) const {
  const Hold hold(*this);
  const std::string folder = label_folder(tag);
  find_file(images_in(folder, true), id);
  for (const std::string& path : image_files_in(folder))
    if (io::stem_of(path) == id) remove_file(path);
}

}  // namespace cytra::app
