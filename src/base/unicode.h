#pragma once
// Text of other systems: encodings of tables, and names of files whose letters with marks are
// stored in another of Unicode's forms (macOS: "u" and two dots; others: one letter).
#include <string>
#include <string_view>

namespace cytra {

/// Of UTF-16 whose first character says its byte order (U+FEFF, left out of the result); half a
/// character becomes U+FFFD.
std::string from_utf16(std::string_view bytes);
std::string from_windows_1252(std::string_view bytes);
/// Letters parted from their marks (Unicode's NFD, below U+10000): equal for all forms of a name.
std::string decomposed(std::string_view text);
/// The path that there is, where names differ by their form alone, or are in Windows-1252; `path`
/// itself where it exists, or nothing like it does.
std::string path_as_stored(const std::string& path);

}  // namespace cytra
