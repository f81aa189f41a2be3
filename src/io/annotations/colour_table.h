#pragma once
// Which colour means which class, as data sets with colour PNGs say it in a file beside them.
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

/// A .csv or .tsv with a name and r, g, b (or one colour: #ff0000) in each row, as class_dict.csv;
/// or lines `name:255,0,0:...` (CVAT's labelmap.txt) or `255 0 0 name` (CamVid's
/// label_colors.txt). Nothing where the file is none of these, has a colour or name twice, or no
/// background: a class of such a name (background, void, unlabelled ...), or black.
std::optional<ColourTable> read_colour_table(const std::string& path);
/// The only such file that lies in a folder; nothing for none or several.
std::optional<ColourTable> find_colour_table(const std::string& folder);

}  // namespace cytra::io
