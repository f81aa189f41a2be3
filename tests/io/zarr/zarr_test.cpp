// What python's zarr and ome-zarr write: tests/golden/make_zarr.py.
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/io/fixture.h"
#include "tests/support/at_least.h"

namespace cytra::io {
namespace {

using Json = nlohmann::json;
using Shape = std::array<int64_t, 4>;

std::string golden_zarr(const std::string& name = "") {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/zarr/" + name;
}

uint32_t crc32_of(const std::vector<unsigned char>& bytes) {
  uint32_t crc = ~0U;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

Json zarr_cases() {
  Json all = Json::array();
  for (const char* name : {"v2.json", "v3.json"}) {
    for (const Json& test : Json::parse(bytes_of(golden_zarr(name)))) all.push_back(test);
  }
  return test::at_least(77, std::move(all));
}

Selection zarr_selection(const Json& test) {
  const Json& json = test["selection"];
  Selection selection;
  selection.scene = json.value("scene", int64_t{0});
  selection.level = json.value("level", int64_t{0});
  selection.timepoint = json.value("timepoint", int64_t{-1});
  selection.channels = json.value("channels", std::vector<int64_t>());
  return selection;
}

TEST(Zarr, ReadsWhatPythonWrites) {
  const Json all = zarr_cases();
  for (const Json& test : all) {
    SCOPED_TRACE(test.dump());
    const auto reader =
        open_image(golden_zarr(test["path"].get<std::string>()), zarr_selection(test));
    const ImageInfo& info = reader->info();
    EXPECT_STREQ(name_of(info.dtype), test["dtype"].get<std::string>().c_str());
    ASSERT_EQ(info.shape, test["shape"].get<Shape>());
    EXPECT_EQ(info.channel_names, test["names"].get<std::vector<std::string>>());
    EXPECT_EQ(info.scenes, test["scenes"].get<int64_t>());
    EXPECT_EQ(info.levels, test["levels"].get<int64_t>());
    EXPECT_EQ(info.timepoints, test["timepoints"].get<int64_t>());
    const auto spacing = test["spacing"].get<std::array<double, 3>>();
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(info.geometry.spacing_um[i], spacing[i], 1e-9) << i;
    const Image image = reader->read({});
    EXPECT_EQ(image.shape, info.shape);
    EXPECT_EQ(image.geometry.spacing_um, info.geometry.spacing_um);
    EXPECT_EQ(image.channel_names, info.channel_names);
    ASSERT_EQ(image.pixels.size(), image.bytes());
    EXPECT_EQ(crc32_of(image.pixels), test["crc"].get<uint32_t>());
  }
}

TEST(Zarr, RegionsAreCropsOfTheWhole) {
  uint32_t state = 1;
  const auto below = [&](int64_t count) {
    state = state * 1664525 + 1013904223;
    return static_cast<int64_t>(state >> 8) % count;
  };
  for (const Json& test : zarr_cases()) {
    const std::string path = golden_zarr(test["path"].get<std::string>());
    SCOPED_TRACE(test.dump());
    const auto reader = open_image(path, zarr_selection(test));
    const Image whole = reader->read({});
    for (int repeat = 0; repeat < 20; ++repeat) {
      Region region;
      for (std::size_t i = 0; i < 3; ++i) {
        region.begin[i] = below(whole.shape[i + 1]);
        region.size[i] = 1 + below(whole.shape[i + 1] - region.begin[i]);
      }
      const Image part = reader->read(region), expected = crop(whole, region, path);
      ASSERT_EQ(part.shape, expected.shape);
      ASSERT_TRUE(part.pixels == expected.pixels);
    }
  }
}

TEST(Zarr, SeveralThreadsReadOneImage) {
  const std::string path = golden_zarr("v3/shard_nested_f32");
  const auto reader = open_image(path);
  const Image whole = reader->read({});
  std::vector<std::thread> threads;
  std::array<int, 4> equal{};
  for (std::size_t i = 0; i < equal.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int64_t k = 0; k < 50; ++k) {
        const Region region{{k % 5, k % 20, k % 17}, {1, -1, -1}};
        equal[i] += reader->read(region).pixels == crop(whole, region, path).pixels;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, (std::array<int, 4>{50, 50, 50, 50}));
}

TEST(Zarr, TouchesOnlyTheChunksItNeeds) {
  const Folder folder;
  const std::string path = folder / "image";
  std::filesystem::copy(
      golden_zarr("v2/blosc_lz4_u16"), path, std::filesystem::copy_options::recursive);
  const Image whole = read_image(path);  // 3 x 12 x 17 in chunks of 2 x 5 x 8
  for (const char* chunk : {"/0.0.0", "/0.1.0", "/1.1.1", "/1.2.2"}) put(path + chunk, "damaged");
  const auto reader = open_image(path);
  const Region fine{{0, 0, 8}, {2, 12, 9}};
  EXPECT_TRUE(reader->read(fine).pixels == crop(whole, fine, path).pixels);
  const std::string message = message_of<DataError>([&] { reader->read({{0, 0, 7}, {1, 1, 2}}); });
  EXPECT_EQ(message.find(path + "/0.0.0: its blosc data can't be decoded"), 0U) << message;

  // The first chunk of a shard is damaged; others of the same file are read.
  const std::string shards = folder / "shards";
  std::filesystem::copy(
      golden_zarr("v3/shard_u16"), shards, std::filesystem::copy_options::recursive);
  const Image before = read_image(shards);
  std::string bytes = bytes_of(shards + "/c/0/0/0");
  bytes.replace(0, 8, "damaged!");
  put(shards + "/c/0/0/0", bytes);
  const auto sharded = open_image(shards);
  const Region other{{2, 5, 8}, {2, 5, 8}};
  EXPECT_TRUE(sharded->read(other).pixels == crop(before, other, shards).pixels);
  EXPECT_NE(message_of<DataError>([&] { sharded->read({}); }).find("chunk 0 of the shard"),
            std::string::npos);
}

TEST(Zarr, NamesWhatASelectionLacks) {
  const auto message = [&](const std::string& name, const Selection& selection) {
    return message_of<DataError>([&] { open_image(golden_zarr(name), selection); });
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const std::string image = "v2/ome_tczyx.zarr";
  expect(message(image, {}), "ome_tczyx.zarr: 2 time points, expected one");
  expect(message(image, {0, 0, 2, {}}), "no time point 2, expected 0 to 1");
  expect(message(image, {1, 0, 0, {}}), "no scene 1, expected 0");
  expect(message(image, {0, 2, 0, {}}), "no level 2, expected 0 to 1");
  expect(message(image, {0, 0, 0, {0, 3}}), "no channel 3, expected 0 to 2");
  expect(message(image, {0, 0, 0, {-1}}), "no channel -1");
  expect(message("v3/plate_0.4.zarr", {4, 0, -1, {}}), "no scene 4, expected 0 to 3");
  expect(message("v3/ome_0.5.zarr/labels", {}), "cells");
  expect(message("v2", {}), "a folder without a Zarr image");
  const auto reader = open_image(golden_zarr("v3/zstd_u16"));
  for (const Region& region : {Region{{0, 0, 17}, {1, 1, -1}},
                               Region{{-1, 0, 0}, {1, 1, 1}},
                               Region{{0, 0, 0}, {4, 1, 1}},
                               Region{{0, 0, 0}, {0, 1, 1}},
                               Region{{0, 0, 0}, {-2, 1, 1}},
                               Region{{0, 1, 0}, {1, INT64_MAX, 1}}}) {
    expect(message_of<DataError>([&] { reader->read(region); }), "zstd_u16: a region of ");
  }
}

/// A small v2 array whose metadata tests change.
struct Store {
  explicit Store(const Folder& folder) : path(folder / "image.zarr") {
    std::filesystem::create_directories(path + "/0");
    put(path + "/.zgroup", R"({"zarr_format": 2})");
    write();
    put(path + "/0/0.0", std::string(12, '\7'));
  }
  void write() const {
    put(path + "/.zattrs", attributes.dump());
    put(path + "/0/.zarray", array.dump());
  }
  std::string message() const {
    write();
    return message_of<DataError>([&] { read_image(path); });
  }
  Json& dataset() { return attributes["multiscales"][0]["datasets"][0]; }
  std::string path;
  Json array = Json::parse(
      R"({"zarr_format": 2, "shape": [3, 4], "chunks": [3, 4], "dtype": "|u1", "compressor": null,
          "fill_value": 0, "order": "C", "filters": null})");
  Json attributes = Json::parse(
      R"({"multiscales": [{"version": "0.4", "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
          "datasets": [{"path": "0"}]}]})");
};

// What takes time by the square of their number does not come to its end here.
TEST(Zarr, ReadsMetadataOfManyNames) {
  const Folder folder;
  Store store(folder);
  for (int i = 0; i < 100'000; ++i) store.attributes["more"][std::to_string(i)] = Json::object();
  store.write();
  EXPECT_EQ(read_image(store.path).shape, (std::array<int64_t, 4>{1, 1, 3, 4}));
}

TEST(Zarr, NothingOutsideTheFolderIsRead) {
  const Folder folder;
  Store store(folder);
  EXPECT_EQ(store.message(), "");
  std::filesystem::copy(
      store.path, folder / "other.zarr", std::filesystem::copy_options::recursive);
  for (const std::string& path : {std::string("../other.zarr/0"),
                                  std::string("0/../0"),
                                  folder / "other.zarr/0",
                                  std::string("/etc"),
                                  std::string("./0"),
                                  std::string("0//0"),
                                  std::string(""),
                                  std::string("0\0/", 3),
                                  std::string(5000, 'a')}) {
    store.dataset()["path"] = path;
    EXPECT_NE(store.message().find("expected one below this folder"), std::string::npos)
        << path << ": " << store.message();
  }
  std::filesystem::create_directory_symlink(folder / "other.zarr/0", store.path + "/link");
  store.dataset()["path"] = "link";
  EXPECT_NE(store.message().find("a link out of"), std::string::npos) << store.message();
  // A link to a chunk, one out of a folder with the same beginning of a name, and one within.
  store.dataset()["path"] = "0";
  const std::string chunk = store.path + "/0/0.0";
  std::filesystem::remove(chunk);
  std::filesystem::create_symlink(folder / "other.zarr/0/0.0", chunk);
  EXPECT_NE(store.message().find("a link out of"), std::string::npos) << store.message();
  std::filesystem::rename(folder / "other.zarr", folder / "image.zarr2");
  std::filesystem::remove(chunk);
  std::filesystem::create_symlink("../../image.zarr2/0/0.0", chunk);
  EXPECT_NE(store.message().find("a link out of"), std::string::npos) << store.message();
  std::filesystem::remove(chunk);
  put(store.path + "/0/real", std::string(12, '\7'));
  std::filesystem::create_symlink("real", chunk);
  EXPECT_EQ(store.message(), "");
  // The folder that is named may be a link itself.
  std::filesystem::create_directory_symlink(store.path, folder / "here");
  EXPECT_EQ(read_image(folder / "here").pixels, std::vector<unsigned char>(12, 7));
  // Neither a folder nor a pipe is a chunk.
  std::filesystem::remove(chunk);
  std::filesystem::create_directory(chunk);
  EXPECT_NE(store.message().find("not a file"), std::string::npos) << store.message();
  std::filesystem::remove(chunk);
  ASSERT_EQ(::mkfifo(chunk.c_str(), 0600), 0);
  EXPECT_NE(store.message().find("not a file"), std::string::npos) << store.message();
}

TEST(Zarr, SaysWhatIsWrongWithMetadata) {
  const Folder folder;
  const auto expect = [&](const char* key, const Json& value, const std::string& part) {
    Store store(folder);
    store.array[key] = value;
    const std::string message = store.message();
    EXPECT_EQ(message.rfind(store.path, 0), 0U) << key << ": " << message;
    EXPECT_NE(message.find(part), std::string::npos) << key << ": " << message;
  };
  expect("shape", {3, 4, 5}, "'chunks' is [3,4], expected 3 sizes");
  expect("shape", {3, 0}, "'shape' is [3,0], expected sizes of at least 1");
  expect("shape", {3, -4}, "'shape' is [3,-4]");
  expect("shape", {3, 1e300}, "'shape' is");
  expect("shape", "big", "'shape' is \"big\", expected 1 to 8 sizes");
  expect("shape", {int64_t{1} << 39, int64_t{1} << 39}, "not plausible");
  expect("shape", {1 << 20, 1 << 20}, "chunks, and 1 files are there");
  expect("chunks", {1 << 20, 1 << 20}, "larger than 1 GB");
  expect("dtype", "<c8", "the type \"<c8\" is not supported");
  expect("dtype", Json::array({Json::array({"a", "<u2"})}), "is not supported");
  expect("dtype", "<f1", "is not supported");
  expect("compressor", {{"id", "bz2"}}, "the compression \"bz2\" is not supported, expected blosc");
  expect("filters", Json::array({{{"id", "delta"}}}), "'filters' is");
  expect("order", "D", "'order' is \"D\"");
  expect("fill_value", 300, "'fill_value' is 300");
  expect("dimension_separator", "-", "the separator is");
  expect("dtype", "<u2", "12 bytes of samples, expected 24");
  expect("compressor", {{"id", "gzip"}}, "its gzip data can't be decoded");
  expect("compressor", {{"id", "zstd"}}, "its zstd data can't be decoded");
  expect("compressor", {{"id", "blosc"}}, "its blosc data can't be decoded");
  expect("compressor", {{"id", "lz4"}}, "its LZ4 data can't be decoded");
  {
    Store store(folder);
    store.array = {{"zarr_format", 2}};
    EXPECT_NE(store.message().find(".zarray: 'shape' is missing"), std::string::npos);
    put(store.path + "/0/.zarray", "{\"shape\": [");
    EXPECT_NE(message_of<DataError>([&] { read_image(store.path); }).find("not JSON"),
              std::string::npos);
    put(store.path + "/0/.zarray", std::string(100000, '[') + std::string(100000, ']'));
    EXPECT_NE(message_of<DataError>([&] { read_image(store.path); }).find("nested too deep"),
              std::string::npos);
    std::filesystem::remove(store.path + "/0/.zarray");
    EXPECT_NE(message_of<DataError>([&] { read_image(store.path); }).find("not a Zarr array"),
              std::string::npos);
  }
  const auto attributes = [&](const char* text, const std::string& part) {
    Store store(folder);
    store.attributes.merge_patch(Json::parse(text));
    EXPECT_NE(store.message().find(part), std::string::npos) << store.message();
  };
  attributes(R"({"multiscales": []})", "'multiscales' is []");
  attributes(R"({"multiscales": [{"axes": ["y", "x"]}]})", "'datasets' is missing");
  attributes(R"({"multiscales": [{"axes": ["y"], "datasets": [{"path": "0"}]}]})", "'axes' is");
  attributes(R"({"multiscales": [{"axes": ["y", "y"], "datasets": [{"path": "0"}]}]})",
             "two axes 'y'");
  attributes(R"({"multiscales": [{"axes": ["z", "y", "x"], "datasets": [{"path": "0"}]}]})",
             "2 dimensions, expected 3");
  attributes(
      R"({"multiscales": [{"axes": ["y", "x"], "datasets": [{"path": "0", "coordinateTransformations":
                 [{"type": "scale", "scale": [1]}]}]}]})",
      "'scale' is [1], expected 2 numbers");
  attributes(R"({"multiscales": null})", "a group without an image");
}

TEST(Zarr, SparseImagesAreLimitedByWhatIsThere) {
  const Folder folder;
  Store store(folder);
  store.array["shape"] = {40000, 40000};  // 1.6 GB with 12 bytes on the disk
  store.array["chunks"] = {400, 400};
  std::filesystem::remove(store.path + "/0/0.0");
  EXPECT_NE(store.message().find("read it in parts"), std::string::npos) << store.message();
  const auto reader = open_image(store.path);
  EXPECT_EQ(reader->read({{0, 39990, 39990}, {1, -1, -1}}).pixels,
            std::vector<unsigned char>(100, 0));
}

/// The chunks of the array in `path`, below it.
std::vector<std::string> chunk_keys(const std::string& path) {
  std::vector<std::string> keys;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name != ".zarray" && name != "zarr.json")
      keys.push_back(entry.path().lexically_relative(path).string());
  }
  return keys;
}

// Reading gave the fill value in silence.
TEST(Zarr, ChunksThatLieUnderOtherKeysAreAnError) {
  const Folder folder;
  const std::string path = folder / "a";
  const auto message = [&](const std::string& name, const auto& renamed) {
    std::filesystem::remove_all(path);
    std::filesystem::copy(golden_zarr(name), path, std::filesystem::copy_options::recursive);
    std::filesystem::create_directories(path + ".new");
    for (const std::string& key : chunk_keys(path)) {
      const std::string to = path + ".new/" + renamed(key);
      std::filesystem::create_directories(std::filesystem::path(to).parent_path());
      std::filesystem::rename(path + "/" + key, to);
    }
    if (std::filesystem::exists(path + "/c")) std::filesystem::remove_all(path + "/c");
    for (const auto& entry : std::filesystem::directory_iterator(path + ".new"))
      std::filesystem::rename(entry.path(), path + "/" + entry.path().filename().string());
    std::filesystem::remove_all(path + ".new");
    return message_of<DataError>([&] { read_image(path); });
  };
  const auto with = [](char from, char to) {
    return [from, to](std::string key) {
      std::replace(key.begin(), key.end(), from, to);
      return key;
    };
  };
  const Image whole = read_image(golden_zarr("v2/blosc_lz4_u16"));
  std::string text = message("v2/blosc_lz4_u16", with('.', '/'));
  EXPECT_NE(
      text.find("no chunk has a name that its metadata give (0.0.0, ...), but 0/0/0 is there"),
      std::string::npos)
      << text;
  // What it says can be done: it is read, then.
  ASSERT_NE(text.find("write \"dimension_separator\": \"/\" into .zarray"), std::string::npos)
      << text;
  Json array = Json::parse(bytes_of(path + "/.zarray"));
  array["dimension_separator"] = "/";
  put(path + "/.zarray", array.dump());
  EXPECT_TRUE(read_image(path).pixels == whole.pixels);
  text = message("v2/blosc_lz4_u16", [](const std::string& key) { return "c." + key; });
  EXPECT_NE(text.find("but c.0.0.0 is there; copy the array again"), std::string::npos) << text;
  text = message("v2/blosc_lz4_u16", [](const std::string& key) { return "0." + key; });
  EXPECT_NE(text.find("but 0.0.0.0 is there; copy the array again"), std::string::npos) << text;

  // Zarr 3: a shard is named as a chunk.
  for (const char* name : {"v3/shard_u16", "v3/zstd_u16"}) {
    const Image all = read_image(golden_zarr(name));
    using Names = std::pair<std::string, std::function<std::string(std::string)>>;
    for (const Names& names :
         {Names{R"({"name":"default","configuration":{"separator":"."}})", with('/', '.')},
          Names{R"({"name":"v2","configuration":{"separator":"/"}})",
                [](const std::string& key) { return key.substr(2); }},
          Names{R"({"name":"v2","configuration":{"separator":"."}})",
                [&](const std::string& key) { return with('/', '.')(key.substr(2)); }}}) {
      text = message(name, names.second);
      Json json = Json::parse(bytes_of(path + "/zarr.json"));
      const std::size_t at = text.find("write \"chunk_key_encoding\": ");
      ASSERT_NE(at, std::string::npos) << text;
      const std::string said = text.substr(at + 28, text.find(" into zarr.json") - at - 28);
      EXPECT_EQ(Json::parse(said), Json::parse(names.first)) << text;
      json["chunk_key_encoding"] = Json::parse(said);
      put(path + "/zarr.json", json.dump());
      EXPECT_TRUE(read_image(path).pixels == all.pixels);
    }
  }
}

TEST(Zarr, AnImageWithoutAnyChunkIsWarnedOfOnce) {
  const Folder folder;
  Store store(folder);
  const auto warning = [&] {
    testing::internal::CaptureStderr();
    EXPECT_EQ(store.message(), "");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning(), "");
  std::filesystem::remove(store.path + "/0/0.0");
  // What systems leave behind, and notes, are no chunks
  for (const char* name : {".DS_Store", "._0.0", "Thumbs.db", "readme.txt", "0.0.part"})
    put(store.path + "/0/" + name, "x");
  const std::string text = warning();
  EXPECT_NE(text.find("image.zarr/0: no chunk is there, so all voxels are the fill value"),
            std::string::npos)
      << text;
  EXPECT_EQ(warning(), "") << "said again";
  // A part without chunks is what a sparse image is.
  store.path = folder / "sparse.zarr";
  std::filesystem::create_directories(store.path + "/0");
  put(store.path + "/.zgroup", R"({"zarr_format": 2})");
  store.array["shape"] = {3, 8};
  put(store.path + "/0/0.1", std::string(12, '\7'));
  store.write();
  testing::internal::CaptureStderr();
  EXPECT_EQ(open_image(store.path)->read({{0, 0, 0}, {1, 3, 4}}).pixels,
            std::vector<unsigned char>(12, 0));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Zarr, ChunksOfAShardMayNotShareBytes) {
  const Folder folder;
  const std::string path = folder / "a";
  std::filesystem::copy(
      golden_zarr("v3/shard_start_i16"), path, std::filesystem::copy_options::recursive);
  std::string bytes = bytes_of(path + "/c/0/0/0");
  for (int i = 1; i < 8; ++i)
    bytes.replace(static_cast<std::size_t>(16 * i), 16, bytes.substr(0, 16));
  bytes.resize(16 * 8 + 150);
  put(path + "/c/0/0/0", bytes);
  EXPECT_NE(message_of<DataError>([&] { read_image(path); }).find("expected some of its own"),
            std::string::npos);
}

TEST(Zarr, ImagePaths) {
  EXPECT_TRUE(is_image_path(golden_zarr("v2/ome_tczyx.zarr")) &&
              is_image_path(golden_zarr("v2/ome_cyx.zarr/")));
  EXPECT_TRUE(is_image_path(golden_zarr("v3/zstd_u16")) && is_image_path(golden_zarr("v2/f16")));
  EXPECT_FALSE(is_image_path(golden_zarr("v2")) || is_image_path(golden_zarr("v2.json")));
  const Folder folder;
  std::filesystem::create_directory(folder / "a.tif");
  std::filesystem::create_directory(folder / "b.zarr");
  std::filesystem::create_directory(folder / ".b.zarr.tmp.12.0");
  put(folder / ".b.zarr.tmp.12.0/.zgroup", "{}");
  EXPECT_FALSE(is_image_path(folder / "a.tif") || is_image_path(folder / ".b.zarr.tmp.12.0"));
  EXPECT_TRUE(is_image_path(folder / "b.zarr"));
  EXPECT_NE(message_of<DataError>([&] { open_image(folder / "b.zarr"); }).find("not a Zarr image"),
            std::string::npos);
  EXPECT_THROW(open_image(folder / "none.zarr"), ConfigError);
}

TEST(Zarr, ReadsRealImages) {
  SKIP_WITHOUT_REAL_DATA();
  for (const char* version : {"v1", "v2"}) {
    const Image image = read_image(real_data(std::string("omezarr/") + version));
    EXPECT_EQ(image.dtype, Dtype::u8);
    EXPECT_EQ(image.shape, (Shape{2, 1, 16, 16}));
  }
  const Image stack = read_image(real_data("plantseg/3d.zarr/raw"));
  EXPECT_EQ(stack.dtype, Dtype::f64);
  EXPECT_EQ(stack.shape, (Shape{1, 10, 10, 10}));
}

TEST(Zarr, StatesNoMoreChunksThanItHas) {  // time points and planes of 10^6 to 10^12 without a file
  for (const char* shape :
       {"1000000,1,1,64,64", "1099511627776,1,1,64,64", "1,1,1099511627776,64,64"}) {
    const Folder folder;
    std::filesystem::create_directories(folder / "a.zarr");
    put(folder / "a.zarr/.zarray",
        std::string("{\"zarr_format\":2,\"shape\":[") + shape +
            "],\"chunks\":[1,1,1,64,64],\"dtype\":\"|u1\",\"compressor\":null,\"fill_value\":0,"
            "\"order\":\"C\",\"filters\":null}");
    Selection first;
    first.timepoint = 0;
    const auto message = [&] {
      return message_of<DataError>([&] { open_image(folder / "a.zarr", first); });
    };
    EXPECT_NE(message().find("chunks, and 0 files are there"), std::string::npos) << message();
    if (shape[1] != '0' || shape[7] != ',') continue;
    for (int t = 0; t < 16; ++t)  // mostly empty
      put(folder / ("a.zarr/" + std::to_string(t) + ".0.0.0.0"), std::string(4096, 'x'));
    EXPECT_EQ(message(), "");
  }
}

}  // namespace
}  // namespace cytra::io
