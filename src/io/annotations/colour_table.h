#pragma once
// Reads which colour means which class, from a file beside the colour PNGs of a data set.
#include <optional>
#include <string>
#include <vector>

namespace cytra::io {

struct ColourTable {
  struct Class {
    std::string name, colour;  // "#ff0000"
  };
  std::vector<Class> classes;  // background first
};

/// Reads a colour table: a .csv or .tsv with a name and r, g, b (or one colour: #ff0000) in each
/// row, as class_dict.csv; or lines `name:255,0,0:...` (CVAT's labelmap.txt) or `255 0 0 name`
/// (CamVid's label_colors.txt). Nothing where the file is none of these, has a colour or name
/// twice, or has no background: a class with a name such as background, void, unlabelled, or
/// black.
std::optional<ColourTable> read_colour_table(const std::string& path);
/// The only such file in a folder; nothing for none or several.
std::optional<ColourTable> find_colour_table(const std::string& folder);

}  // namespace cytra::io
