#pragma once
// Names of images and of their targets that differ by what is before or behind a common part.
#include <string>
#include <vector>

namespace cytra::data {

/// data.regex that pairs images (names without extension) with targets of another folder; empty
/// where equal names pair them, or nothing does.
std::vector<std::string> regex_of_folders(const std::vector<std::string>& images,
                                          const std::vector<std::string>& targets);
/// The same of one folder that holds both: the targets are those with a word such as _mask, _seg,
/// _labels, _gt at an end of their name. Empty where there are none.
std::vector<std::string> regex_of_one_folder(const std::vector<std::string>& names);

}  // namespace cytra::data
