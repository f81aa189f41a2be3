// OME-TIFFs in several files: tests/golden/make_ome_set.py.
#include <nlohmann/json.hpp>

#include "tests/io/golden_cases.h"
#include "tests/support/at_least.h"

namespace cytra::io {
namespace {

using nlohmann::json;

std::string golden_set(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/ome_set/" + name;
}
json set_cases() {
  return test::at_least(13, json::parse(bytes_of(golden_set("cases.json"))));
}
/// The files of a set elsewhere, with `to` for `from` (of the same length) in all of them.
void copy_set(const std::string& prefix,
              const Folder& folder,
              const std::string& from = "",
              const std::string& to = "") {
  for (const auto& entry : std::filesystem::directory_iterator(golden_set(""))) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0) continue;
    std::string bytes = bytes_of(entry.path().string());
    for (std::size_t at = 0; !from.empty() && (at = bytes.find(from, at)) != std::string::npos;)
      bytes.replace(at, from.size(), to);
    put(folder / name, bytes);
  }
}

TEST(OmeSet, IsReadAsTifffileReadsIt) {
  int count = 0;
  for (const json& entry : set_cases()) {
    SCOPED_TRACE(entry.dump());
    const auto reader = open_image(golden_set(entry["file"]), selection_of(entry));
    const ImageInfo& info = reader->info();
    EXPECT_EQ(name_of(info.dtype), entry["dtype"].get<std::string>());
    EXPECT_EQ(json(info.shape), entry["shape"]);
    EXPECT_EQ(info.scenes, entry.value("scenes", 1));
    EXPECT_EQ(info.timepoints, entry.value("timepoints", 1));
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_DOUBLE_EQ(info.geometry.spacing_um[i], entry["spacing_um"][i].get<double>());
    EXPECT_EQ(crc_of(reader->read({})), entry["crc32"].get<uint32_t>());
    ++count;
  }
  EXPECT_GT(count, 10);
}

TEST(OmeSet, RegionsAndChannelsArePartsOfTheWhole) {
  for (const char* name : {"turns_1.ome.tif", "rgb_1.ome.tif", "slave_1.ome.tif"}) {
    SCOPED_TRACE(name);
    const auto reader = open_image(golden_set(name));
    const Image whole = reader->read({});
    const auto [c, z, y, x] = whole.shape;
    const Region region{{z / 2, 2, 1}, {z - z / 2, y - 3, x - 4}};
    EXPECT_EQ(reader->read(region).pixels, crop(whole, region, name).pixels);
    Selection some;
    some.channels = {c - 1, 0};
    const Image swapped = open_image(golden_set(name), some)->read({});
    const auto bytes = static_cast<std::ptrdiff_t>(whole.bytes()) / c;
    EXPECT_TRUE(std::equal(whole.pixels.end() - bytes, whole.pixels.end(), swapped.pixels.begin()));
    EXPECT_TRUE(std::equal(
        whole.pixels.begin(), whole.pixels.begin() + bytes, swapped.pixels.begin() + bytes));
  }
}

TEST(OmeSet, OtherFilesAreOpenedWhenTheirPlanesAreRead) {
  const Folder folder;
  copy_set("turns", folder);
  put(folder / "turns_1.ome.tif", "damaged");
  const auto reader = open_image(folder / "turns_0.ome.tif");
  EXPECT_EQ(reader->read({{2, 0, 0}, {1, -1, -1}}).count(), 40 * 33);
  EXPECT_NE(message_of<DataError>([&] {
              reader->read({{1, 0, 0}, {1, -1, -1}});
            }).find("turns_1.ome.tif"),
            std::string::npos);
}

TEST(OmeSet, AMissingFileIsNamed) {
  const Folder folder;
  copy_set("rgb", folder);
  std::filesystem::remove(folder / "rgb_1.ome.tif");
  const std::string message = error_of(folder / "rgb_0.ome.tif");
  EXPECT_NE(message.find("rgb_1.ome.tif can't be found, expected"), std::string::npos) << message;
}

TEST(OmeSet, NoFileOutsideOfTheFolderIsOpened) {
  for (const char* name : {"../rgb_1.ome", "/b_1.ome.tif", "a\\b_1.ome.ti", "..", "."}) {
    const Folder folder;
    const std::string to = std::string("FileName=\"") + name + "\"";
    const std::string from = "FileName=\"rgb_1.ome.tif\"";
    copy_set("rgb", folder, from, to + std::string(from.size() - to.size(), ' '));
    const std::string message = error_of(folder / "rgb_0.ome.tif");
    EXPECT_NE(message.find("not one in the same folder"), std::string::npos) << message;
  }
  const Folder folder;
  copy_set("slave", folder, "MetadataFile=\"master.ome.tif\"", "MetadataFile=\"../ter.ome.tif\"");
  EXPECT_NE(error_of(folder / "slave_1.ome.tif").find("not one in the same folder"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra::io
