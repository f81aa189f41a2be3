#pragma once
// Names in folders that hold one image each, and its targets.
#include <string>
#include <vector>

namespace cytra::data {

struct ImageFolder {
  std::vector<std::string> images, folders;  // names of what lies directly in it
};

/// The folders of the images and of the targets that most of several have, {"images", "masks"};
/// empty where none or several may be meant.
std::vector<std::string> columns_of_image_folders(const std::vector<ImageFolder>& folders,
                                                  const std::string& source,
                                                  const std::string& target);
/// data.regex that parts the one image of each folder from its masks, whose names have a word such
/// as mask, label or seg; empty where that can't be, or in more than one way.
std::vector<std::string> regex_of_image_folders(const std::vector<ImageFolder>& folders);

}  // namespace cytra::data
