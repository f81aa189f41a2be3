#include "io/image_folder.h"

#include <functional>
#include <set>

#include <sys/inotify.h>
#include <unistd.h>

#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

std::vector<std::string> names_in(const std::string& folder, bool is_recursive = false) {
  std::vector<std::string> names;
  for (const std::string& path : list_images(folder, is_recursive))
    names.push_back(std::filesystem::path(path).lexically_relative(folder).string());
  return names;
}
using FolderNames = std::vector<std::string>;

// Each file of a set was predicted, and paired with a target, as the whole image.
TEST(ImageFolder, ASetOfFilesIsOneImage) {
  const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/ome_set";
  testing::internal::CaptureStderr();
  EXPECT_EQ(names_in(folder),
            (FolderNames{"master.ome.tif",
                         "rgb_0.ome.tif",
                         "scenes_0.ome.tif",  // an image each
                         "scenes_1.ome.tif",
                         "split_t0_c0.ome.tif",
                         "text_0.ome.tif",
                         "turns_0.ome.tif"}));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("7 files are parts of OME-TIFF images"), std::string::npos) << said;
  EXPECT_EQ(scenes_of(folder + "/scenes_1.ome.tif"), (std::vector<int64_t>{1}));
  EXPECT_EQ(scenes_of(folder + "/split_t1_c0.ome.tif"), (std::vector<int64_t>{0}));
  // Without the file that begins it, a part is read, and says what is missing
  const Folder alone;
  for (const char* name : {"split_t1_c0.ome.tif", "split_t1_c1.ome.tif"})
    std::filesystem::copy(folder + "/" + name, alone / name);
  EXPECT_EQ(names_in(alone / "").size(), 2U);
}

/// Names of files in a folder that `work` opens, as often as it does.
std::multiset<std::string> opened_in(const std::string& folder, const std::function<void()>& work) {
  const int watch = ::inotify_init1(IN_NONBLOCK);
  ::inotify_add_watch(watch, folder.c_str(), IN_OPEN);
  work();
  alignas(inotify_event) char events[1 << 16];
  std::multiset<std::string> names;
  for (ssize_t bytes; (bytes = ::read(watch, events, sizeof events)) > 0;) {
    for (ssize_t at = 0; at < bytes;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(events + at);
      if (event->len > 0) names.insert(event->name);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
  ::close(watch);
  return names;
}

// A training lists its images many times, and opened each TIFF as often.
TEST(ImageFolder, AFileThatIsNoPartIsOpenedOnce) {
  const std::string set = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/ome_set/";
  const Folder folder;
  for (const char* name : {"a.tif", "b.ome.tif"})
    std::filesystem::copy(set + "../images/bits_3.tif", folder / name);
  EXPECT_EQ(opened_in(folder / "", [&] { list_images(folder / ""); }),
            (std::multiset<std::string>{"a.tif", "b.ome.tif"}));
  const auto again = [&] {
    EXPECT_EQ(list_images(folder / "").size(), 2U);
    EXPECT_EQ(whole_of(folder / "a.tif"), folder / "a.tif");
  };
  EXPECT_TRUE(opened_in(folder / "", again).empty());
  // One that is another file by now is looked at
  for (const char* name : {"split_t0_c0.ome.tif", "split_t1_c1.ome.tif"})
    std::filesystem::copy(set + name, folder / name);
  std::filesystem::rename(folder / "split_t1_c1.ome.tif", folder / "a.tif");
  EXPECT_EQ(whole_of(folder / "a.tif"), folder / "split_t0_c0.ome.tif");
  EXPECT_EQ(whole_of(folder / "a.tif", /*looks=*/false), folder / "a.tif") << "of its name";
}

TEST(ImageFolder, EveryEndingOfTiffIsAnImage) {
  for (const char* ending : {"tif", "TIFF", "btf", "tf2", "tf8", "ome.tf2", "lsm", "stk"})
    EXPECT_TRUE(is_image_path(std::string("a.") + ending)) << ending;
}

TEST(ImageFolder, WhatSystemsLeaveIsHiddenAndForeignKindsAreCounted) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {1, 1, 4, 5});
  write_npy(folder / "a.npy", image);
  std::filesystem::create_directories(folder / "__MACOSX");
  std::filesystem::create_directories(folder / "sub/.hidden");
  for (const char* name : {"._a.npy", ".b.npy", "__MACOSX/c.npy", "sub/d.npy", "sub/.hidden/e.npy"})
    write_npy(folder / name, image);
  for (const char* name : {"Thumbs.db", ".DS_Store", "notes.txt", "._x.czi"})
    put(folder / name, "x");
  const auto warning = [&] {
    testing::internal::CaptureStderr();
    EXPECT_EQ(names_in(folder / ""), (FolderNames{"a.npy"}));
    EXPECT_EQ(names_in(folder / "", true), (FolderNames{"a.npy", "sub/d.npy"}));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning(), "");
  for (const char* name : {"y y.CZI", "z.czi", "x.nd2"}) put(folder / name, "x");
  const std::string said = warning();
  EXPECT_NE(said.find("files that are not read are left out: 2 .czi, 1 .nd2; convert it with "
                      "Bio-Formats: bfconvert " +
                      (folder / "x.nd2") + " " + (folder / "x.ome.tif")),
            std::string::npos)
      << said;
  EXPECT_EQ(conversion_of("a b/it's.lif"),
            "convert it with Bio-Formats: bfconvert \"a b/it's.lif\" \"a b/it's.ome.tif\"");
  EXPECT_EQ(conversion_of("a.tif"), "");
  EXPECT_NE(conversion_of("a.bif"), "");
  EXPECT_EQ(conversion_of("a.HEIC"), "convert it with ImageMagick: magick a.HEIC a.png");
  EXPECT_EQ(conversion_of("a.qptiff"), "");
  // None but those, and one that is named
  std::filesystem::remove(folder / "a.npy");
  EXPECT_NE(message_of<DataError>([&] { list_images(folder / ""); }).find("2 .czi"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] { read_image(folder / "x.nd2"); }).find("bfconvert"),
            std::string::npos);
}

TEST(ImageFolder, AFileOfSeveralImagesTellsWhichIsTaken) {
  const std::string path = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/zarr/v3/plate_0.4.zarr";
  testing::internal::CaptureStderr();
  read_image(path);
  read_image(path);
  EXPECT_EQ(scenes_of(path), (std::vector<int64_t>{0, 1, 2, 3}));
  read_image(path, {2});
  const std::string said = testing::internal::GetCapturedStderr();
  const std::size_t at = said.find("scene 0 is taken, 3 others are left out");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("is taken", at + 20), std::string::npos) << "said twice: " << said;
}

}  // namespace
}  // namespace cytra::io
