#include "base/unicode.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include <utf8proc.h>

#include "base/escape.h"

namespace cytra {
namespace {

constexpr char32_t kUnknown = 0xFFFD;

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char one) { return static_cast<unsigned char>(one) < 0x80; });
}

}  // namespace

std::string from_utf16(std::string_view bytes) {
  const bool is_big = bytes.size() > 1 && static_cast<unsigned char>(bytes[0]) == 0xFE;
  const auto unit = [&](std::size_t i) -> char32_t {
    const char32_t first = static_cast<unsigned char>(bytes[i]);
    const char32_t second = static_cast<unsigned char>(bytes[i + 1]);
    return is_big ? (first << 8) | second : (second << 8) | first;
  };
  std::string text;
  for (std::size_t i = 2; i + 1 < bytes.size(); i += 2) {
    char32_t letter = unit(i);
    if (letter >= 0xD800 && letter < 0xE000) {
      const char32_t second = letter < 0xDC00 && i + 3 < bytes.size() ? unit(i + 2) : 0;
      const bool is_pair = second >= 0xDC00 && second < 0xE000;
      letter = is_pair ? 0x10000 + ((letter - 0xD800) << 10) + (second - 0xDC00) : kUnknown;
      if (is_pair) i += 2;
    }
    append_utf8(letter, text);
  }
  if (bytes.size() % 2 != 0) append_utf8(kUnknown, text);
  return text;
}

bool is_printable(uint32_t letter) {
  const utf8proc_category_t kind = utf8proc_category(static_cast<utf8proc_int32_t>(letter));
  return letter == ' ' || (kind > UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS);
}

std::string from_windows_1252(std::string_view bytes) {
  // 0x80 to 0x9F; the rest is Latin-1
  constexpr char16_t kOwn[] = {0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021,
                               0x2C6,  0x2030, 0x160,  0x2039, 0x152,  0x8D,   0x17D,  0x8F,
                               0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                               0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    append_utf8(code >= 0x80 && code < 0xA0 ? kOwn[code - 0x80] : code, text);
  }
  return text;
}

std::string decomposed(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  utf8proc_uint8_t* parts = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()),
                   &parts,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(parts, std::free);
  if (bytes < 0) return std::string(text);  // no UTF-8
  return {reinterpret_cast<const char*>(parts), static_cast<std::size_t>(bytes)};
}

std::string path_as_stored(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto exists = [&](const fs::path& one) {
    return fs::exists(fs::symlink_status(one, error));
  };
  if (path.empty() || exists(path)) return path;
  if (is_ascii(path)) return path;
  const auto form_of = [](const std::string& name) {
    return decomposed(is_utf8(name) ? name : from_windows_1252(name));
  };
  fs::path found;
  for (const fs::path& part : fs::path(path)) {
    if (exists(found / part)) {
      found /= part;
      continue;
    }
    const std::string wanted = form_of(part.string());
    fs::path same;
    fs::directory_iterator entries(found.empty() ? fs::path(".") : found, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      if (form_of(entries->path().filename().string()) == wanted) same = entries->path().filename();
    }
    if (same.empty()) return path;
    found /= same;
  }
  return found.string();
}

}  // namespace cytra
