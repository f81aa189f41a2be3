#include "io/weights/unpacked_archive.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/weights/zip_directory.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

/// Unpacks a file of an archive. Throws: DataError where it is damaged, IoError.
void write_entry(const std::string& place, const ZipEntry& entry, const std::string& file) {
  AtomicFile out(file);
  uint32_t crc = 0;
  const auto take = [&](const char* bytes, std::size_t count) {
    crc = static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes), count));
    out.write(bytes, count);
  };
  const auto finish = [&] {
    if (crc != entry.crc) {
      throw DataError(
          "{}: damaged in the archive: its CRC-32 is {:08x}, expected {:08x}; copy it again",
          place,
          crc,
          entry.crc);
    }
    out.commit(/*durable=*/false);
  };
  if (entry.is_stored) {
    take(entry.packed.data(), entry.packed.size());
    return finish();
  }
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw MemoryError(place + ": no memory is left");
  std::string chunk(std::size_t{1} << 20, '\0');
  std::string_view left = entry.packed;
  uint64_t written = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    const auto part = std::min<std::size_t>(left.size(), std::size_t{1} << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left.data()));
    stream.avail_in = static_cast<uInt>(part);
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    result = inflate(&stream, Z_NO_FLUSH);
    left.remove_prefix(part - stream.avail_in);
    written += chunk.size() - stream.avail_out;
    if (written > entry.size) break;
    try {
      take(chunk.data(), chunk.size() - stream.avail_out);
    } catch (...) {
      inflateEnd(&stream);
      throw;
    }
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || written != entry.size)
    throw DataError(place + ": damaged in the archive; copy it again");
  finish();
}

}  // namespace

UnpackedArchive::UnpackedArchive(const std::string& path) {
  std::error_code missing;
  const fs::path temporary = fs::temp_directory_path(missing);
  if (missing) throw ConfigError("TMPDIR: not a folder, expected one for the files of " + path);
  std::string pattern = (temporary / "cytra-model-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw_errno("can't be made", pattern, errno);
  folder_ = inner_ = pattern;
  try {
    InputFile file(path);
    file.map();
    file.read_mapped([&](const unsigned char* first) {
      const std::string_view bytes(reinterpret_cast<const char*>(first),
                                   static_cast<std::size_t>(file.bytes()));
      const std::vector<ZipEntry> entries = zip_entries(path, bytes);
      uint64_t left = (uint64_t{64} << 20) + 20 * file.bytes();
      for (const ZipEntry& entry : entries) {
        const std::string place = fmt::format("{}: {}", path, printable(entry.name));
        const fs::path name = entry.name;
        if (entry.name.empty() || name.is_absolute() || contains(name, "..") ||
            entry.name.find('\\') != std::string::npos ||
            entry.name.find('\0') != std::string::npos)
          throw DataError(place + ": a name that leads out of the archive's folder");
        if (entry.name.back() == '/') continue;
        if (!entry.is_stored && !entry.is_deflated)
          throw DataError(place + ": encrypted or packed in a rare way, expected a plain archive");
        if (entry.size > left) {
          throw DataError("{}: more than 64 MiB and 20 times the archive, once unpacked", path);
        }
        left -= entry.size;
        const fs::path target = folder_ / name;
        make_folders(target.parent_path().string());
        write_entry(place, entry, target.string());
      }
      return 0;
    });
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename() != "__MACOSX") inside.push_back(entry.path());
    if (inside.size() == 1 && fs::is_directory(inside[0])) inner_ = inside[0].string();
  } catch (...) {
    remove_all_quietly(folder_);
    throw;
  }
}

UnpackedArchive::~UnpackedArchive() {
  remove_all_quietly(folder_);
}

}  // namespace cytra::io
