#include "io/weights/unpacked_archive.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "io/compression/zip_writer.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

std::string archive_of(const test::TmpDir& dir,
                       const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string path = dir / "model.zip";
  fs::remove(path);
  ZipWriter archive(path);
  for (const auto& [name, bytes] : files) archive.add(name, bytes);
  archive.finish();
  return path;
}

TEST(UnpackedArchive, HoldsTheFilesWhileItLives) {
  const test::TmpDir dir;
  std::string folder;
  {
    const std::string large(3 << 20, 'a');
    const UnpackedArchive archive(
        archive_of(dir, {{"net/rdf.yaml", "name: a"}, {"net/w/a.pt", large}}));
    folder = archive.folder();
    EXPECT_EQ(fs::path(folder).filename(), "net");
    EXPECT_EQ(read_file(folder + "/rdf.yaml"), "name: a");
    EXPECT_EQ(read_file(folder + "/w/a.pt"), large);
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST(UnpackedArchive, RefusesWhatIsHostile) {
  const test::TmpDir dir;
  const auto refused = [&](const std::string& path) {
    const std::string message = message_of<DataError>([&] { UnpackedArchive archive(path); });
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  for (const std::string name : {"../a", "/tmp/a", "a/../../b", "a\\..\\b", ""}) {
    EXPECT_NE(refused(archive_of(dir, {{name, "1"}})).find("leads out of the archive's folder"),
              std::string::npos)
        << name;
  }
  const std::string zeros(100 << 20, '\0');
  EXPECT_NE(refused(archive_of(dir, {{"a", zeros}})).find("more than 64 MiB"), std::string::npos);
  std::string damaged = read_file(archive_of(dir, {{"a", std::string(1000, 'a') + "b"}}));
  damaged[40] ^= 0x55;
  write_file(dir / "damaged.zip", damaged);
  EXPECT_NE(refused(dir / "damaged.zip").find("damaged"), std::string::npos);
  std::string other = read_file(archive_of(dir, {{"a", "1"}}));
  other[other.rfind("PK\1\2") + 16] ^= 0x55;  // of the checksum
  write_file(dir / "other.zip", other);
  EXPECT_NE(refused(dir / "other.zip").find("its CRC-32 is 83dcefb7, expected"), std::string::npos);
  write_file(dir / "cut.zip", damaged.substr(0, damaged.size() - 8));
  EXPECT_NE(refused(dir / "cut.zip").find("cut"), std::string::npos);
}

}  // namespace
}  // namespace cytra::io
