#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cytra::io {

/// A file of a ZIP archive in memory.
struct ZipEntry {
  std::string name;
  std::string_view packed;                      // its bytes in the archive
  uint64_t size = 0;                            // those of the file
  uint32_t crc = 0;                             // their CRC-32
  bool is_stored = false, is_deflated = false;  // neither: encrypted, or packed in a rare way
};
/// The files in the archive's order, each name once. Checksums are the caller's to check. Throws:
/// DataError for anything that is no whole archive. Source: PKWARE's APPNOTE 6.3.10, sections 4.3
/// and 4.5.3.
std::vector<ZipEntry> zip_entries(const std::string& path, std::string_view bytes);

/// The files by name, as torch.save writes them: compressed or encrypted files have no data().
/// Throws: what zip_entries throws.
std::map<std::string, std::string_view> zip_directory(const std::string& path,
                                                      std::string_view bytes);

}  // namespace cytra::io
