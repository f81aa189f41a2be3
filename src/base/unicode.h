#pragma once
// Text of other systems: encodings of tables, and names of files that store letters with marks in
// another form of Unicode (macOS: "u" and two dots; others: one letter).
#include <cstdint>
#include <string>
#include <string_view>

namespace cytra {

/// Converts UTF-16 to UTF-8. The first character gives the byte order (U+FEFF, left out of the
/// result); half a character becomes U+FFFD.
std::string from_utf16(std::string_view bytes);
/// Whether a letter can be shown, by Python's str.isprintable(): no control, mark of direction,
/// private or unassigned number, nor a blank but " ".
bool is_printable(uint32_t letter);
std::string from_windows_1252(std::string_view bytes);
/// Separates letters from their marks (Unicode's NFD): equal for all forms of a name. Other bytes
/// than UTF-8 are returned as they are.
std::string decomposed(std::string_view text);
/// The existing path whose names differ from `path` only by Unicode's form, or are in
/// Windows-1252; `path` itself where it exists, or where there is no such path.
std::string path_as_stored(const std::string& path);

}  // namespace cytra
