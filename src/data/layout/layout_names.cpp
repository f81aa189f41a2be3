#include "data/layout/layout_names.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/strings.h"

namespace cytra::data {

namespace {
bool is_one_of_names(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* one) { return in_small_letters(name) == one; });
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

}  // namespace cytra::data
