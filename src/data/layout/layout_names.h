#pragma once
// Usual names of folders, columns and files of images and of their targets.
#include <string>

namespace cytra::data {

/// The name that an image shares with its partners: "a" for a.tif, a.ome.tif, a.nii.gz and
/// a.ome.zarr.
std::string stem_of(std::string name);
bool names_source(const std::string& name);  // "images"
bool names_target(std::string name);         // "masks", "1st_manual"
bool names_split(const std::string& name);   // "train", "val"

}  // namespace cytra::data
