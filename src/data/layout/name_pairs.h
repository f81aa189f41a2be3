#pragma once
// Pairs images with targets whose names differ before or after a common part.
#include <string>
#include <vector>

namespace cytra::data {

/// The data.regex that pairs images (names without extension) with targets of another folder;
/// empty where equal names pair them, or nothing does.
std::vector<std::string> regex_of_folders(const std::vector<std::string>& images,
                                          const std::vector<std::string>& targets);
/// The data.regex for one folder that holds images and targets: targets have a word such as _mask,
/// _seg, _labels, _gt at an end of their name. Empty where there are none.
std::vector<std::string> regex_of_one_folder(const std::vector<std::string>& names);

}  // namespace cytra::data
