#include "io/weights/zip_directory.h"

#include <set>

#include "base/error.h"

namespace cytra::io {
namespace {

class ZipReader {
 public:
  ZipReader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  std::vector<ZipEntry> read() {
    const std::size_t end = find_end();
    uint64_t count = number(end + 10, 2), size = number(end + 12, 4), at = number(end + 16, 4);
    if (end >= 20 && is_at(end - 20, "PK\6\7")) {  // ZIP64
      const uint64_t wide = number(end - 12, 8);
      if (!is_at(wide, "PK\6\6")) refuse("its ZIP64 directory is missing");
      count = number(wide + 32, 8);
      size = number(wide + 40, 8);
      at = number(wide + 48, 8);
    }
    if (part(at, size).size() / kEntry < count) refuse("its directory is cut");
    std::vector<ZipEntry> files;
    for (; count > 0; --count) at = read_entry(at, files);
    return files;
  }

 private:
  static constexpr std::size_t kEnd = 22, kEntry = 46, kLocal = 30;

  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(path_ + ": " + what +
                    " (cut or damaged?), expected a whole ZIP archive; copy it again");
  }
  std::string_view part(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) refuse("it ends too early");
    return bytes_.substr(at, size);
  }
  uint64_t number(uint64_t at, std::size_t size) const {
    uint64_t value = 0;
    const std::string_view digits = part(at, size);
    for (std::size_t i = size; i > 0; --i)
      value = value << 8 | static_cast<unsigned char>(digits[i - 1]);
    return value;
  }
  bool is_at(uint64_t at, std::string_view mark) const {
    return at <= bytes_.size() && bytes_.substr(at).starts_with(mark);
  }

  /// Finds the directory's end record: the last one that is followed by a comment of its length.
  std::size_t find_end() const {
    std::size_t at = bytes_.rfind("PK\5\6");
    const std::size_t first = bytes_.size() - std::min<std::size_t>(bytes_.size(), kEnd + 0xffff);
    while (at != std::string_view::npos && at >= first) {
      if (at + kEnd <= bytes_.size() && at + kEnd + number(at + 20, 2) == bytes_.size()) return at;
      if (at == 0) break;
      at = bytes_.rfind("PK\5\6", at - 1);
    }
    refuse("the ZIP archive has no directory");
  }

  /// Adds one file; returns where the next one's entry begins.
  uint64_t read_entry(uint64_t at, std::vector<ZipEntry>& files) {
    if (!is_at(at, "PK\1\2")) refuse("its directory is damaged");
    const bool is_encrypted = (number(at + 8, 2) & 1) != 0;
    const uint64_t method = number(at + 10, 2), name_size = number(at + 28, 2),
                   extra_size = number(at + 30, 2), comment_size = number(at + 32, 2);
    uint64_t packed = number(at + 20, 4), size = number(at + 24, 4), local = number(at + 42, 4);
    const std::string name(part(at + kEntry, name_size));
    const uint64_t extra = at + kEntry + name_size, next = extra + extra_size + comment_size;
    part(extra, next - extra);
    for (uint64_t field = extra; field + 4 <= extra + extra_size;) {
      const uint64_t field_end = field + 4 + number(field + 2, 2);
      if (number(field, 2) == 1) {  // ZIP64: those that are too large above, in this order
        uint64_t wide = field + 4;
        for (uint64_t* value : {&size, &packed, &local}) {
          if (*value != UINT32_MAX) continue;
          if (wide + 8 > field_end) refuse("its directory is damaged");
          *value = number(wide, 8);
          wide += 8;
        }
      }
      field = field_end;
    }
    ZipEntry entry{name,
                   {},
                   size,
                   static_cast<uint32_t>(number(at + 16, 4)),
                   method == 0 && !is_encrypted,
                   method == 8 && !is_encrypted};
    if (entry.is_stored || entry.is_deflated) {
      if ((entry.is_stored && packed != size) || !is_at(local, "PK\3\4"))
        refuse("its directory is damaged");
      const uint64_t before = kLocal + number(local + 26, 2) + number(local + 28, 2);
      part(local, before);
      entry.packed = part(local + before, packed);
    }
    if (!names_.insert(name).second) refuse("two files have one name");
    files.push_back(std::move(entry));
    return next;
  }

  const std::string& path_;
  std::string_view bytes_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<ZipEntry> zip_entries(const std::string& path, std::string_view bytes) {
  return ZipReader(path, bytes).read();
}

std::map<std::string, std::string_view> zip_directory(const std::string& path,
                                                      std::string_view bytes) {
  std::map<std::string, std::string_view> files;
  for (ZipEntry& entry : zip_entries(path, bytes))
    files.emplace(std::move(entry.name), entry.is_stored ? entry.packed : std::string_view());
  return files;
}

}  // namespace cytra::io
