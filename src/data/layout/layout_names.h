#pragma once
// Usual names of folders, columns and files of images and of their targets, and how they pair.
#include <string>
#include <string_view>
#include <vector>

#include "data/datamodule.h"

namespace cytra::data {

/// The name that an image shares with its partners: "a" for a.tif, a.ome.tif, a.nii.gz and
/// a.ome.zarr.
std::string stem_of(std::string name);
bool names_source(const std::string& name);  // "images"
bool names_target(std::string name);         // "masks", "1st_manual"
bool names_split(const std::string& name);   // "train", "Val"

/// Stands for the word of a part in the name of a folder: "{split}_images".
inline constexpr std::string_view kSplit = "{split}";
/// The word by which a folder in `place` stands for a part, as it is written there (split_named(),
/// in letters of any case): of the folder WORD, or of one named like `pattern`, a path with kSplit.
/// "": there is none.
std::string part_in(const std::string& place, Split part, const std::string& pattern = "");
/// The pattern with the word in place of kSplit.
std::string with_part(std::string pattern, const std::string& word);

/// The data.regex that pairs images (names without extension) with targets of another folder;
/// empty where equal names pair them, or nothing does.
std::vector<std::string> regex_of_folders(const std::vector<std::string>& images,
                                          const std::vector<std::string>& targets);
/// The data.regex for one folder that holds images and targets: targets have a word such as _mask,
/// _seg, _labels, _gt at an end of their name. Empty where there are none.
std::vector<std::string> regex_of_one_folder(const std::vector<std::string>& names);

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
