#include "io/annotations/colour_table.h"

#include <fmt/format.h>

#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

std::string colours_in(const std::string& name, const std::string& text) {
  const Folder folder;
  put(folder / name, text);
  const auto table = find_colour_table(folder / "");
  std::string found;
  if (!table) return "none";
  for (const auto& [class_name, colour] : table->classes)
    found += fmt::format("{}={} ", class_name, colour);
  return found;
}

TEST(ColourTable, HasTheFormsThatDataSetsHave) {
  const std::string expected = "background=#000000 red cell=#ff0000 stroma=#008000 ";
  EXPECT_EQ(colours_in("labelmap.txt",
                       "# label:color_rgb:parts:actions\nred cell:255,0,0::\nstroma:0,128,0::\n"
                       "background:0,0,0::\n"),
            expected);
  EXPECT_EQ(colours_in("class_dict.csv",
                       "name,r,g,b\nbackground,0,0,0\nred cell,255,0,0\nstroma,0,128,0\n"),
            expected);
  EXPECT_EQ(colours_in("label_colors.txt",
                       "255 0 0 red cell\r\n0 128 0\tstroma\r\n0 0 0\t\tbackground\r\n"),
            expected);
  EXPECT_EQ(colours_in("classes.tsv",
                       "Class\tColor\nred cell\t#FF0000\nstroma\t#008000\nbackground\t#000000\n"),
            expected);
  EXPECT_EQ(colours_in("c.csv", "label,red,green,blue\ntissue,0,0,0\ntumour,9,9,9\n"),
            "tissue=#000000 tumour=#090909 ");
}

TEST(ColourTable, IsNoOtherFile) {
  for (const auto& [name, text] : {std::pair{"README.txt", "Images of cells.\nSee: the paper\n"},
                                   std::pair{"classes.txt", "nucleus\ncell\n"},
                                   std::pair{"train.csv", "raw,seg\na.tif,b.tif\n"},
                                   std::pair{"a.txt", "a:255,0,0\nb:300,0,0\n"},
                                   std::pair{"a.txt", "a:0,0,0\nb:0,0,0\n"},
                                   std::pair{"a.txt", "a:1,0,0\nb:2,0,0\n"},
                                   std::pair{"a.txt", ""},
                                   std::pair{"a.csv", "name,r,g\na,0,0\n"}})
    EXPECT_EQ(colours_in(name, text), "none") << text;
  const Folder folder;
  for (const char* name : {"a.txt", "b.txt"}) put(folder / name, "bg:0,0,0\nx:1,1,1\n");
  EXPECT_FALSE(find_colour_table(folder / "")) << "one of two";
}

}  // namespace
}  // namespace cytra::io
