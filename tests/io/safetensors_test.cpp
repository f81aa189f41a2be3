#include "io/safetensors.h"

#include <cstring>

#include "base/files.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\1');
}

std::string safetensors_error(const Folder& folder, const std::string& bytes) {
  const std::string path = folder / "a.safetensors";
  put(path, bytes);
  return message_of<DataError>([&] { const SafetensorsFile file(path); });
}

TEST(Safetensors, RoundTrip) {
  const Folder folder;
  const std::string path = folder / "a.safetensors";
  const float floats[] = {1, 2, 3, 4, 5, 6};
  const uint8_t bytes[] = {7, 8, 9};
  const int64_t number = -5;
  const std::map<std::string, TensorView> tensors = {
      {"a.bytes", {"U8", {3}, bytes, 3}},
      {"b.empty", {"F16", {0, 4}, nullptr, 0}},
      {"c.scalar", {"I64", {}, &number, 8}},
      {"d \"q\" \xC3\xA9", {"F32", {2, 3}, floats, 24}}};
  const std::map<std::string, std::string> metadata = {{"format", "pt"},
                                                       {"config", "{\"a\": [1, \"\n\"]}"}};
  const std::size_t written = write_safetensors(path, tensors, metadata);
  EXPECT_EQ(written, std::filesystem::file_size(path));
  const SafetensorsFile file(path);
  std::map<std::string, std::string> found = file.metadata();
  EXPECT_EQ(found.at("xxh3").size(), 16U);
  found.erase("xxh3");
  EXPECT_EQ(found, metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const auto& [name, view] : tensors) {
    const TensorView& back = file.tensors().at(name);
    EXPECT_EQ(back.dtype, view.dtype);
    EXPECT_EQ(back.shape, view.shape);
    ASSERT_EQ(back.bytes, view.bytes);
    if (view.bytes == 0) continue;
    EXPECT_EQ(std::memcmp(back.data, view.data, view.bytes), 0);
    const std::size_t element = view.dtype == "I64" ? 8 : view.dtype == "F32" ? 4 : 1;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.data) % element, 0U);
  }
  write_safetensors(path, {}, {});
  EXPECT_TRUE(SafetensorsFile(path).tensors().empty());
}

TEST(Safetensors, EveryFlippedBitIsNoticed) {
  const Folder folder;
  const std::string path = folder / "a.safetensors";
  const float floats[] = {1, 2, 3};
  write_safetensors(path, {{"a", {"F32", {3}, floats, 12}}}, {{"state", "{\"step\": 7}"}});
  SafetensorsFile(path).verify();
  const std::string good = read_file(path);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    put(path, bad);
    // a damaged name of the checksum hides it: such a file counts as one without
    const auto verified = [&] {
      const SafetensorsFile file(path);
      file.verify();
      return file.metadata().count("xxh3") == 1;
    };
    try {
      EXPECT_FALSE(verified()) << "bit " << bit;
    } catch (const DataError&) {
    }
  }
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  const Folder folder;
  EXPECT_EQ(safetensors_error(folder, file_of("{}", 0)), "");
  EXPECT_EQ(safetensors_error(folder, file_of("{}      ", 0)), "");
  EXPECT_EQ(safetensors_error(folder,
                              file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                      R"("b":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
                                      3)),
            "");
}

TEST(Safetensors, RefusesEverythingElse) {
  const Folder folder;
  const auto entry =
      [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
        return "\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape +
               ",\"data_offsets\":" + offsets + "}";
      };
  const auto one =
      [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
        return file_of("{" + entry(dtype, shape, offsets) + "}", 8);
      };
  const std::string good = entry("\"F32\"", "[2]", "[0,8]");
  ASSERT_EQ(safetensors_error(folder, file_of("{" + good + "}", 8)), "");
  std::string other = good;
  other[1] = 'b';
  const std::string bad[] = {
      "",
      "\x02",
      std::string(8, '\0'),
      std::string(8, '\xff') + "{}",
      std::string("\x10\0\0\0\0\0\0\0{}", 10),
      file_of("", 4),
      file_of("[]", 0),
      file_of("{", 0),
      file_of("{}}", 0),
      file_of(" {}", 0),
      file_of("{\"a\":1}", 0),
      file_of("{\"a\":{}}", 0),
      file_of("{\"\xff\":1}", 0),
      file_of("{" + good + "}", 7),
      file_of("{" + good + "}", 9),
      file_of("{" + good + "," + good + "}", 8),
      file_of("{" + good + "," + other + "}", 8),
      file_of("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", 8),
      file_of(std::string(100'000, '{'), 0),
      file_of("{\"__metadata__\":[]}", 0),
      file_of("{\"__metadata__\":{\"a\":1}}", 0),
      file_of("{\"__metadata__\":{\"a\":\"x\",\"a\":\"y\"}}", 0),
      file_of("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
              8),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8),
      one("\"F33\"", "[2]", "[0,8]"),
      one("5", "[2]", "[0,8]"),
      one("\"F32\"", "[-2]", "[0,8]"),
      one("\"F32\"", "[2.0]", "[0,8]"),
      one("\"F32\"", "[\"2\"]", "[0,8]"),
      one("\"F32\"", "2", "[0,8]"),
      one("\"F32\"", "[3]", "[0,8]"),
      one("\"F32\"", "[2]", "[8,0]"),
      one("\"F32\"", "[2]", "[0,8,9]"),
      one("\"F32\"", "[2]", "[-8,0]"),
      one("\"F32\"", "[2]", "[1e0,9]"),
      one("\"F32\"", "[2]", "[18446744073709551608,0]"),
      one("\"F32\"", "[2]", "[0,99999999999999999999999]"),
      one("\"F32\"", "[9223372036854775807,2]", "[0,8]"),
      one("\"F32\"", "[4611686018427387905,1]", "[0,4]"),
      one("\"F32\"", "[0,18446744073709551615]", "[0,0]"),
      one("\"F32\"", "[1]", "[4,8]"),
      one("\"F32\"", "[1e999]", "[0,8]"),
  };
  for (const std::string& bytes : bad) {
    const std::string message = safetensors_error(folder, bytes);
    EXPECT_EQ(message.rfind(folder / "a.safetensors: ", 0), 0U)
        << (&bytes - bad) << ": " << bytes.substr(0, 100);
  }
  EXPECT_THROW(SafetensorsFile(folder / "none"), ConfigError);
}

TEST(Safetensors, ManyTensorsTakeNoTimeByTheirSquare) {  // 40 s once
  const Folder folder;
  std::string header = "{";
  for (int i = 0; i < 40000; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(i) + "," +
              std::to_string(i + 1) + "]}";
  }
  put(folder / "a", file_of(header + "}", 40000));
  EXPECT_EQ(SafetensorsFile(folder / "a").tensors().size(), 40000U);
}

TEST(Safetensors, ShortenedWhileItIsReadIsADataError) {  // SIGBUS once
  const Folder folder;
  const std::vector<unsigned char> values(1 << 16, 7);
  write_safetensors(folder / "a", {{"a", {"U8", {1 << 16}, values.data(), values.size()}}}, {});
  const SafetensorsFile file(folder / "a");
  const TensorView& view = file.tensors().at("a");
  const auto* bytes = static_cast<const unsigned char*>(view.data);
  const auto reading = file.reading();
  reading.check();
  std::filesystem::resize_file(folder / "a", 100);
  EXPECT_EQ(bytes[view.bytes - 1], 0);
  EXPECT_NE(message_of<DataError>([&] { reading.check(); }).find("became shorter"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] { file.verify(); }).find("expected"), std::string::npos);
}

TEST(Safetensors, TruncatedAnywhereIsADataError) {
  const Folder folder;
  const float floats[] = {1, 2, 3, 4, 5, 6};
  write_safetensors(folder / "whole",
                    {{"a", {"F32", {2, 3}, floats, 24}}, {"b", {"F32", {1}, floats, 4}}},
                    {{"k", "v"}});
  const std::string bytes = bytes_of(folder / "whole");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(safetensors_error(folder, bytes.substr(0, size)), "") << size;
}

TEST(Safetensors, FullDiskLeavesTheOldFile) {
  const Folder folder;
  const std::string path = folder / "a";
  const std::vector<float> floats(10'000, 1);
  const std::map<std::string, TensorView> tensors = {
      {"a", {"F32", {10'000}, floats.data(), 40'000}}};
  write_safetensors(path, {}, {});
  const std::string before = bytes_of(path);
  for (const std::size_t limit : {0, 5, 50, 39'999}) {
    const FileSizeLimit full(limit);
    EXPECT_THROW(write_safetensors(path, tensors, {}), IoError);
  }
  EXPECT_EQ(bytes_of(path), before);
  EXPECT_EQ(folder.files(), 1U);
}

}  // namespace
}  // namespace cytra::io
