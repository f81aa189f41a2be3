#pragma once
// Finds images and targets by their names in folders that hold one image each.
#include <string>
#include <vector>

namespace cytra::data {

struct ImageFolder {
  std::vector<std::string> images, folders;  // names of what is directly in the folder
};

/// The names of the images' and the targets' folders that most of `folders` have, {"images",
/// "masks"}; empty where none or several are possible.
std::vector<std::string> columns_of_image_folders(const std::vector<ImageFolder>& folders,
                                                  const std::string& source,
                                                  const std::string& target);
/// The data.regex that separates the one image of each folder from its masks, whose names have a
/// word such as mask, label or seg; empty where that is not possible, or in several ways.
std::vector<std::string> regex_of_image_folders(const std::vector<ImageFolder>& folders);

}  // namespace cytra::data
