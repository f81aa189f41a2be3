#include "data/layout/layout_names.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>

#include "base/strings.h"

namespace cytra::data {
namespace {

bool is_one_of_names(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* one) { return in_small_letters(name) == one; });
}

/// The names that most folders have; the loaders report an image without a target.
std::vector<std::string> shared_by_most(const std::vector<ImageFolder>& folders) {
  std::map<std::string, std::size_t> counts;
  for (const ImageFolder& folder : folders)
    for (const std::string& name : folder.folders) ++counts[name];
  std::vector<std::string> names;
  for (const auto& [name, count] : counts)
    if (4 * count >= 3 * folders.size()) names.push_back(name);
  return names;
}

/// The one name that is asked for, or that is of a kind; "" for none or several.
template <class IsOfKind>
std::string one_of_kind(std::vector<std::string> names,
                        const std::string& wanted,
                        const IsOfKind& is_of_kind) {
  if (std::ranges::count(names, wanted) > 0) return wanted;
  std::erase_if(names, std::not_fn(is_of_kind));
  return names.size() == 1 ? names[0] : "";
}

/// The names without `word`: the image of each folder; empty where the word does not separate
/// them.
std::vector<std::string> images_without(const std::vector<ImageFolder>& folders,
                                        const std::string& word) {
  std::vector<std::string> images;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    for (const std::string& name : folders[i].images)
      if (name.find(word) == std::string::npos) images.push_back(name);
    if (images.size() != i + 1 || folders[i].images.size() < 2) return {};
  }
  return images;
}

}  // namespace

bool names_source(const std::string& name) {
  return is_one_of_names(name,
                         {"raw",
                          "image",
                          "images",
                          "img",
                          "imgs",
                          "input",
                          "inputs",
                          "x",
                          "jpegimages",
                          "source",
                          "file",
                          "filename",
                          "image_path",
                          "path",
                          "tissue_images",
                          "originals",
                          "frames"});
}

bool names_split(const std::string& name) {
  return is_one_of_names(
      name, {"train", "valid", "val", "validation", "test", "training", "testing", "predict"});
}

std::string stem_of(std::string name) {
  const auto cut = [&](const char* extension) {
    const std::size_t length = std::string_view(extension).size();
    if (name.size() > length && ends_with(name, extension)) name.resize(name.size() - length);
  };
  cut(".gz");
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0 && name.find('/', dot) == std::string::npos)
    name.resize(dot);
  cut(".ome");
  return name;
}

bool names_target(std::string name) {
  name = in_small_letters(name);
  for (const char* word :
       {"mask", "label", "seg", "annot", "manual", "truth", "gt", "target", "instance"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> columns_of_image_folders(const std::vector<ImageFolder>& folders,
                                                  const std::string& source,
                                                  const std::string& target) {
  if (folders.size() < 2) return {};
  for (const ImageFolder& folder : folders)
    if (!folder.images.empty()) return {};
  const std::vector<std::string> names = shared_by_most(folders);
  const std::string images = one_of_kind(names, source, names_source);
  const std::string targets = one_of_kind(names, target, names_target);
  if (images.empty() || targets.empty()) return {};
  return {images, targets};
}

std::vector<std::string> regex_of_image_folders(const std::vector<ImageFolder>& folders) {
  if (folders.size() < 2 || folders[0].images.empty()) return {};
  std::vector<std::string> images, regex;
  for (const char* known :
       {"mask", "label", "seg", "annot", "manual", "truth", "gt", "target", "instance"}) {
    std::string word;  // as it is written
    for (const std::string& name : folders[0].images) {
      const std::size_t at = in_small_letters(name).find(known);
      if (at != std::string::npos) word = name.substr(at, std::string(known).size());
    }
    if (word.empty()) continue;
    const std::vector<std::string> found = images_without(folders, word);
    if (found.empty()) continue;
    if (!images.empty() && found != images) return {};
    if (images.empty()) regex = {"(?!.*" + word + ")", ".*" + word};
    images = found;
  }
  return regex;
}

}  // namespace cytra::data
