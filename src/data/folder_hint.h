#pragma once
// What to type for images that lie in folders of other names than those that were looked for.
#include <cstddef>
#include <string>
#include <vector>

namespace cytra::data {

/// 'data.folders=[image,label]' and data.path=PATH, for a shell.
std::string folders_word(const std::vector<std::string>& folders);
std::string path_word(const std::string& path);

/// "; images are in image, label: data=folder 'data.folders=[image,label]'", for
/// `columns` images of a sample; "" where no folder below `root` (or below its train/) has any.
std::string folder_hint(const std::string& root, std::size_t columns);

}  // namespace cytra::data
