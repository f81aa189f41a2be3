// Names that lead elsewhere, are no files, or only look odd.
#include <ctime>

#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "io/csv.h"
#include "io/safetensors.h"
#include "io/weights/torch_file.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(descriptor);
}

/// What a hostile folder may hold beside files: names of it.
std::vector<std::string> make_traps(const std::string& folder) {
  EXPECT_EQ(::mkfifo((folder + "/fifo").c_str(), 0666), 0);
  make_socket(folder + "/socket");
  for (const auto& [name, to] : {std::pair{"zero", "/dev/zero"},
                                 {"null", "/dev/null"},
                                 {"terminal", "/dev/tty"},
                                 {"memory", "/proc/self/mem"},
                                 {"loop", "loop"},
                                 {"dangling", "nowhere"}})
    fs::create_symlink(to, folder + "/" + name);
  fs::create_directory(folder + "/folder");
  return {"fifo", "socket", "zero", "null", "terminal", "memory", "loop", "dangling", "folder"};
}

/// Whether an action ends in an error that is the user's to mend, at once.
template <class Action>
bool is_refused(const Action& action) {
  const auto start = std::chrono::steady_clock::now();
  bool is_error = false;
  try {
    action();
  } catch (const DataError& error) {
    is_error = std::string(error.what()).find('\n') == std::string::npos;
  } catch (const ConfigError& error) {
    is_error = std::string(error.what()).find('\n') == std::string::npos;
  }
  const auto end = std::chrono::steady_clock::now();
  return is_error && std::chrono::duration<double>(end - start).count() < 5;
}

TEST(Names, WhatIsNoFileIsRefused) {
  const Folder folder;
  for (const std::string& trap : make_traps(folder / "")) {
    for (const char* extension : {"", ".tif", ".nii.gz", ".csv", ".hdr"}) {
      const std::string path = folder / (trap + extension);
      if (*extension != '\0') fs::rename(folder / trap, path);
      EXPECT_TRUE(is_refused([&] { read_image(path); })) << path;
      EXPECT_TRUE(is_refused([&] { read_table(path); })) << path;
      EXPECT_TRUE(is_refused([&] { const SafetensorsFile file(path); })) << path;
      EXPECT_TRUE(is_refused([&] { const TorchFile file(path); })) << path;
      if (*extension != '\0' && trap != "loop") fs::rename(path, folder / trap);
      if (trap == "loop") break;
    }
  }
  write_npy(folder / "a", make_image(Dtype::u8, {1, 1, 2, 2}));
  const std::string names[] = {(folder / "a") + std::string(1, '\0'),
                               (folder / "a") + std::string("\0.tif", 5),
                               folder / std::string(300, 'x'),
                               folder / std::string(5000, 'x'),
                               ""};
  for (const std::string& name : names)
    EXPECT_TRUE(is_refused([&] { read_image(name); })) << name.size();
  // The voxels of a header
  const std::string golden = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/images/pair.hdr";
  for (const char* trap : {"fifo", "socket", "zero", "folder"}) {
    put(folder / "b.hdr", bytes_of(golden));
    fs::rename(folder / trap, folder / "b.img");
    EXPECT_TRUE(is_refused([&] { read_image(folder / "b.hdr"); })) << trap;
    fs::rename(folder / "b.img", folder / trap);
  }
}

TEST(Names, OddOnesAreRead) {
  const Folder folder;
  const Image image = make_image(Dtype::u8, {1, 1, 5, 4});
  for (const char* name : {"a b.tif",
                           "\xC3\xA4.tif",
                           "\xE4.tif",
                           "a=b.tif",
                           "it's.tif",
                           "\"q\".tif",
                           "-a.tif",
                           "a,b.tif",
                           "#a.tif",
                           "a%2e.tif",
                           "a\\b.tif",
                           "~a.tif",
                           "a.tif.",
                           "..a.tif",
                           "a\nb.tif",
                           "[a].tif",
                           "{a}.tif",
                           "$HOME.tif",
                           "*.tif",
                           "?",
                           "a.TIF",
                           " .tif",
                           "\xF0\x9F\x94\xAC.tif"}) {
    write_ome_tiff(folder / name, image);
    EXPECT_EQ(read_image(folder / name).pixels, image.pixels) << name;
  }
}

/// Each leads to nothing that a.zarr may read: out of it, to nothing, or to what is no file.
std::vector<std::string> hostile_names(const Folder& folder) {
  std::vector<std::string> names = {"",
                                    ".",
                                    "..",
                                    "...",
                                    "/",
                                    "//",
                                    "./",
                                    "../",
                                    "../b.zarr",
                                    "../b.zarr/",
                                    "./../b.zarr",
                                    "0/../../b.zarr",
                                    "0/..",
                                    "0/../0",
                                    "./0",
                                    "0/./0",
                                    "0//0",
                                    "/0",
                                    "..//b.zarr",
                                    "%2e%2e/b.zarr",
                                    "..%2fb.zarr",
                                    "%2e%2e%2fb.zarr",
                                    "..%252fb.zarr",
                                    "..\\b.zarr",
                                    "\\",
                                    "C:\\b.zarr",
                                    "C:/b.zarr",
                                    "~",
                                    "~/b.zarr",
                                    "~root",
                                    "$HOME",
                                    "${HOME}",
                                    "$(ls)",
                                    "`ls`",
                                    "|ls",
                                    "0;ls",
                                    "0 ",
                                    " 0",
                                    "0.",
                                    "0/ ",
                                    "0\n",
                                    "\n0",
                                    "0\r",
                                    "0\t",
                                    "\x1b[31m0",
                                    "0\x7f",
                                    "file:///b.zarr",
                                    "http://b.zarr",
                                    "/dev/zero",
                                    "/dev/stdin",
                                    "/proc/self/root",
                                    "/proc/self/cwd/b.zarr",
                                    "\xEF\xBC\x8E\xEF\xBC\x8E/b.zarr",
                                    "\xE2\x80\xA5/b.zarr",
                                    "link",
                                    "link/",
                                    "link/0",
                                    "absolute",
                                    "up",
                                    "up/b.zarr",
                                    folder / "b.zarr",
                                    "/" + (folder / "b.zarr"),
                                    (folder / "a.zarr") + "/0",
                                    std::string(1, '\0'),
                                    std::string("0\0", 2),
                                    std::string("0\0/../../b.zarr", 15),
                                    std::string(300, 'x'),
                                    std::string(4096, 'x')};
  std::string deep = "../b.zarr";
  for (int i = 0; i < 30; ++i) deep.insert(0, "0/../");
  names.push_back(deep);
  names.push_back(std::string(2000, '/') + "0");
  return names;
}

TEST(Names, MetadataOfZarrStaysInItsFolder) {
  const Folder folder;
  const std::string array =
      R"({"zarr_format":2,"dtype":"|u1","shape":[1,1],"chunks":[1,1],"compressor":null,"filters":null,"order":"C","fill_value":7})";
  const std::string image = R"({"multiscales":[{"datasets":[{"path":"0"}]}]})";
  const std::string well = R"({"well":{"images":[{"path":"0"}]}})";
  // b.zarr could be read as anything: an array, an image, a well
  for (const char* name : {"a.zarr", "b.zarr"}) {
    fs::create_directories(folder / (std::string(name) + "/0/0"));
    put(folder / (std::string(name) + "/0/.zarray"), array);
  }
  put(folder / "b.zarr/.zarray", array);
  put(folder / "b.zarr/.zattrs", image);
  const std::string inside = folder / "a.zarr";
  std::vector<std::string> names = hostile_names(folder);
  for (const std::string& trap : make_traps(inside)) names.push_back(trap);
  fs::create_symlink("../b.zarr", inside + "/link");
  fs::create_symlink(folder / "b.zarr", inside + "/absolute");
  fs::create_symlink("..", inside + "/up");
  const auto texts = [](const Json& json) {
    return json.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  int count = 0;
  for (const std::string& name : names) {
    const Json path = {{"path", name}};
    const std::string attributes[] = {
        texts({{"multiscales", {{{"datasets", {path}}}}}}),
        texts({{"plate", {{"wells", {path}}}}}),
        texts({{"well", {{"images", {path}}}}}),
        texts({{"bioformats2raw.layout", 3}}),
    };
    for (const std::string& text : attributes) {
      put(inside + "/.zattrs", text);
      const bool is_series = &text == &attributes[3];
      if (is_series) {
        fs::create_directories(inside + "/OME");
        put(inside + "/OME/.zattrs", texts({{"series", {name}}}));
      }
      // A trailing slash is dropped, and "" is the group itself, which is no array.
      EXPECT_TRUE(is_refused([&] { read_image(inside); })) << text;
      ++count;
    }
  }
  EXPECT_GE(count, 200);
  put(inside + "/.zattrs", image);
  EXPECT_EQ(read_image(inside).pixels[0], 7);
}

TEST(Names, ChunksAndMetadataOfZarrAreFiles) {
  const Folder folder;
  const std::string array =
      R"({"zarr_format":2,"dtype":"|u1","shape":[1,1],"chunks":[1,1],"compressor":null,"filters":null,"order":"C","fill_value":7})";
  const std::string inside = folder / "a.zarr";
  fs::create_directories(inside);
  const std::vector<std::string> traps = make_traps(folder / "");
  put(folder / "secret", "\x2a");
  for (const std::string& file : {inside + "/.zarray", inside + "/0.0"}) {
    put(inside + "/.zarray", array);
    for (const std::string& trap : traps) {
      if (trap == "loop" || trap == "dangling") continue;  // a missing chunk is one of fill values
      ::unlink(file.c_str());
      fs::rename(folder / trap, file);
      EXPECT_TRUE(is_refused([&] { read_image(inside); })) << trap << " as " << file;
      fs::rename(file, folder / trap);
    }
    fs::create_symlink("../secret", file);
    EXPECT_TRUE(is_refused([&] { read_image(inside); })) << file;
    ::unlink(file.c_str());
  }
}

TEST(Names, OddOnesOfZarrAreRead) {
  const Folder folder;
  const std::string array =
      R"({"zarr_format":2,"dtype":"|u1","shape":[1,1],"chunks":[1,1],"compressor":null,"filters":null,"order":"C","fill_value":7})";
  for (const char* name : {"a b",
                           "\xC3\xA4",
                           "a=b",
                           "it's",
                           "\"",
                           "-a",
                           "a,b",
                           "#",
                           "%2e%2e",
                           "a\\b",
                           "~",
                           "0.",
                           "..a",
                           "...",
                           "[a]",
                           "a/b",
                           "$HOME",
                           " ",
                           "a/"}) {
    const std::string inside = folder / "a.zarr";
    fs::remove_all(inside);
    fs::create_directories(inside + "/" + name);
    put(inside + "/.zattrs", Json{{"multiscales", {{{"datasets", {{{"path", name}}}}}}}}.dump());
    put(inside + "/" + name + "/.zarray", array);
    EXPECT_EQ(read_image(inside).pixels[0], 7) << name;
  }
}

}  // namespace
}  // namespace cytra::io
