#pragma once
// Advice what to type where images are in folders of other names than expected.
#include <cstddef>
#include <string>
#include <vector>

namespace cytra::data {

/// The words 'data.folders=[image,label]' and data.path=PATH, quoted for a shell.
std::string folders_word(const std::vector<std::string>& folders);
std::string path_word(const std::string& path);

/// A hint for a message: "; images are in image, label: data=folder 'data.folders=[image,label]'",
/// for
/// `columns` images of a sample; "" where no folder below `root` (or below its train/) has any.
std::string folder_hint(const std::string& root, std::size_t columns);

}  // namespace cytra::data
