#pragma once
#include <map>
#include <string>
#include <string_view>

namespace cytra::io {

/// The files of a ZIP archive that lies in memory, by name; those that are compressed or encrypted
/// have no data(). Checksums are not looked at (torch.save may leave them out). Throws: DataError
/// for anything that is no whole archive. Source: PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.5.3.
std::map<std::string, std::string_view> zip_directory(const std::string& path,
                                                      std::string_view bytes);

}  // namespace cytra::io
