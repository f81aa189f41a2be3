#pragma once
// Damage to the bytes of a file, reproducible by its seed; knows where formats keep their sizes.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/io/hostile.h"

namespace cytra::io {

constexpr uint64_t kAbsurd[] = {0,
                                1,
                                0x7f,
                                0xff,
                                0x7fff,
                                0xffff,
                                0x10000,
                                0x1000000,
                                0x40000000,
                                0x7fffffff,
                                0x80000000,
                                0xffffffff,
                                0x100000000,
                                0x7fffffffffffffff,
                                0x8000000000000000,
                                0xffffffffffffffff};
inline uint64_t absurd(Random& random) {
  return kAbsurd[random.below(std::size(kAbsurd))];
}

inline bool holds(const std::string& bytes, uint64_t at, uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}
inline uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size, bool is_big) {
  uint64_t value = 0;
  for (std::size_t i = 0; i < size && holds(bytes, at, size); ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + (is_big ? i : size - 1 - i)]);
  return value;
}
inline void put_number(
    std::string& bytes, std::size_t at, std::size_t size, bool is_big, uint64_t value) {
  for (std::size_t i = 0; i < size && holds(bytes, at, size); ++i)
    bytes[at + (is_big ? size - 1 - i : i)] = static_cast<char>(value >> (8 * i));
}

/// Where headers lie: at the beginning, of some formats at the end; else anywhere.
inline std::size_t any_place(const std::string& bytes, Random& random) {
  const std::size_t near = std::min<std::size_t>(bytes.size(), 400), kind = random.below(4);
  return bytes.empty() ? 0
         : kind == 0   ? random.below(bytes.size())
         : kind == 1   ? bytes.size() - 1 - random.below(near)
                       : random.below(near);
}

/// Numbers of a text, one of them changed.
inline void change_digits(std::string& bytes, Random& random) {
  const std::size_t begin = bytes.find_first_of("0123456789", any_place(bytes, random));
  if (begin == std::string::npos) return;
  const std::size_t end = std::min(bytes.find_first_not_of("0123456789", begin), bytes.size());
  constexpr const char* kNumbers[] = {"0",
                                      "-1",
                                      "65537",
                                      "2147483648",
                                      "4294967297",
                                      "9223372036854775807",
                                      "18446744073709551615",
                                      "1e308",
                                      "1e999",
                                      "0.5",
                                      "nan",
                                      "null",
                                      ""};
  const std::size_t kind = random.below(std::size(kNumbers) + 2);
  if (kind < std::size(kNumbers)) {
    bytes.replace(begin, end - begin, kNumbers[kind]);
  } else {
    bytes.insert(begin, std::string(1 + random.below(12), "0159"[random.below(4)]));
  }
}

/// A place that holds one of the image's own sizes, set to an absurd one.
inline void change_size(std::string& bytes, const std::vector<int64_t>& sizes, Random& random) {
  if (sizes.empty()) return;
  const auto side = static_cast<uint64_t>(sizes[random.below(sizes.size())]);
  const std::size_t size = std::size_t{2} << random.below(3);
  const bool is_big = random.below(2) == 0;
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at + size <= std::min<std::size_t>(bytes.size(), 1200); ++at) {
    if (number_at(bytes, at, size, is_big) == side) places.push_back(at);
  }
  if (!places.empty())
    put_number(bytes, places[random.below(places.size())], size, is_big, absurd(random));
}

/// A field of a TIFF's directories, or their order: loops, shared and missing ones.
inline void change_directory(std::string& bytes, Random& random) {
  if (bytes.size() < 16) return;
  const bool is_big = bytes[0] == 'M', is_long = bytes[is_big ? 3 : 2] == '+';
  const std::size_t word = is_long ? 8 : 4, entry_size = 4 + 2 * word, count_size = is_long ? 8 : 2;
  std::vector<std::size_t> entries, links = {is_long ? 8U : 4U}, directories;
  while (directories.size() < 20) {
    const uint64_t at = number_at(bytes, links.back(), word, is_big);
    if (at == 0 || !holds(bytes, at, 8)) break;
    const uint64_t count = number_at(bytes, at, count_size, is_big);
    if (count > 100) break;
    for (uint64_t i = 0; i < count && at + count_size + (i + 1) * entry_size <= bytes.size(); ++i)
      entries.push_back(at + count_size + i * entry_size);
    directories.push_back(at);
    links.push_back(at + count_size + count * entry_size);
  }
  if (entries.empty()) return;
  const std::size_t entry = entries[random.below(entries.size())], kind = random.below(8);
  if (kind == 0) {  // the next directory is an earlier one, or nowhere
    const uint64_t to =
        random.below(3) == 0 ? absurd(random) : directories[random.below(directories.size())];
    put_number(bytes, links[random.below(links.size())], word, is_big, to);
  } else if (kind == 1) {
    put_number(bytes,
               entry,
               2,
               is_big,
               number_at(bytes, entries[random.below(entries.size())], 2, is_big));
  } else if (kind == 2) {
    put_number(bytes, entry + 2, 2, is_big, random.below(20));
  } else if (kind == 3) {
    put_number(
        bytes, entry + 4, word, is_big, random.below(2) == 0 ? absurd(random) : random.below(100));
  } else if (kind == 4) {  // what another one says
    const std::size_t other = entries[random.below(entries.size())];
    bytes.replace(entry + 2, entry_size - 2, bytes.substr(other + 2, entry_size - 2));
  } else {
    const std::size_t size = number_at(bytes, entry + 2, 2, is_big) == 3 ? 2 : word;
    put_number(bytes,
               entry + 4 + word,
               size,
               is_big,
               random.below(3) == 0 ? random.below(70) : absurd(random));
  }
}

/// Elements of a text in the wrong places: for XML, tables and others.
inline void change_text(std::string& text, Random& random) {
  const std::size_t at = random.below(text.size() + 1), kind = random.below(8);
  if (kind < 2) {
    change_digits(text, random);
  } else if (kind == 2) {
    text.insert(at, text, random.below(text.size() + 1), random.below(300));
  } else if (kind == 3) {
    text.erase(at, random.below(60));
  } else if (kind == 4) {
    const char* kPieces[] = {"<",
                             ">",
                             "\"",
                             "'",
                             "&",
                             "&#0;",
                             "&#x110000;",
                             "&amp;amp;",
                             "<!--",
                             "<![CDATA[",
                             "<!DOCTYPE a [<!ENTITY b \"bb\">]>",
                             "&b;",
                             "\xff",
                             "\xc3",
                             "\r",
                             "\n",
                             "\t",
                             ",",
                             "\xEF\xBB\xBF",
                             "\\",
                             "{",
                             "[",
                             "=",
                             "../",
                             "/",
                             "\x01"};
    text.insert(at, kPieces[random.below(std::size(kPieces))]);
  } else if (kind == 5) {
    const char* kOpen[] = {"<a>", "[", "{\"a\":", "\"\"", "<OME ", "&lt;", ",", "<Pixels>", "\n"};
    std::string deep;
    for (const char* piece = kOpen[random.below(std::size(kOpen))]; deep.size() < 3000;)
      deep += piece;
    text.insert(at, deep);
  } else if (!text.empty()) {
    text[at % text.size()] = static_cast<char>(random.below(256));
  }
}

/// The description of a TIFF's first page, changed: it goes to the file's end.
inline void change_description(std::string& bytes, Random& random) {
  const bool is_big = bytes[0] == 'M', is_long = bytes[is_big ? 3 : 2] == '+';
  const std::size_t word = is_long ? 8 : 4, count_size = is_long ? 8 : 2;
  const uint64_t at = number_at(bytes, is_long ? 8 : 4, word, is_big);
  for (uint64_t i = 0; i < number_at(bytes, at, count_size, is_big) && i < 100; ++i) {
    const uint64_t entry = at + count_size + i * (4 + 2 * word);
    if (number_at(bytes, entry, 2, is_big) != 270) continue;
    const uint64_t count = number_at(bytes, entry + 4, word, is_big);
    const uint64_t from = number_at(bytes, entry + 4 + word, word, is_big);
    if (count <= word || from > bytes.size() || count > bytes.size() - from) return;
    std::string text = bytes.substr(from, count - 1);
    for (std::size_t n = 1 + random.below(3); n > 0; --n) change_text(text, random);
    put_number(bytes, entry + 4, word, is_big, text.size() + 1);
    put_number(bytes, entry + 4 + word, word, is_big, bytes.size());
    bytes += text + '\0';
    return;
  }
}

/// A member of a JSON text missing, twice as deep, or of another type.
inline void change_json(std::string& text, Random& random) {
  nlohmann::json root = nlohmann::json::parse(text, nullptr, false);
  nlohmann::json* at = &root;
  while (at->is_structured() && !at->empty() && random.below(5) != 0) {
    const auto which = static_cast<std::ptrdiff_t>(random.below(at->size()));
    at = &*std::next(at->begin(), which);
  }
  switch (random.below(6)) {
    case 0:
      if (at->is_structured() && !at->empty())
        at->erase(std::next(at->begin(), static_cast<std::ptrdiff_t>(random.below(at->size()))));
      break;
    case 1:
      *at = {*at, *at};
      break;
    case 2:
      for (std::size_t n = random.below(100); n > 0; --n)
        *at = nlohmann::json::array({std::move(*at)});
      break;
    case 3:
      *at = absurd(random);
      break;
    case 4: {
      const char* kValues[] = {"null",
                               "true",
                               "-1",
                               "1e300",
                               "\"\"",
                               "\"..\"",
                               "\"/etc\"",
                               "\"a/../..\"",
                               "[]",
                               "{}",
                               "\"NaN\"",
                               "[0,0,0,0]",
                               "\"\\u0000\"",
                               "4294967296",
                               "\"zlib\"",
                               "\"|O\""};
      *at = nlohmann::json::parse(kValues[random.below(std::size(kValues))]);
      break;
    }
    default:
      if (at->is_number_integer()) *at = static_cast<int64_t>(random.below(40));
  }
  text = root.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// One change of a kind that any file can suffer.
inline void change_bytes(std::string& bytes,
                         const std::string& other,
                         const std::vector<int64_t>& sizes,
                         Random& random) {
  if (bytes.empty()) return;
  const std::size_t at = any_place(bytes, random);
  switch (random.below(11)) {
    case 0:
      bytes.resize(random.below(2) == 0 ? at : random.below(bytes.size()));
      break;
    case 1:
    case 2:
      for (std::size_t n = 1 + random.below(8); n > 0; --n) {
        char& byte = bytes[any_place(bytes, random)];
        byte = static_cast<char>(byte ^ 1 << random.below(8));
      }
      break;
    case 3:
      for (std::size_t n = 1 + random.below(8); n > 0; --n)
        bytes[any_place(bytes, random)] = static_cast<char>(random.below(256));
      break;
    case 4:
      put_number(
          bytes, at, std::size_t{1} << random.below(4), random.below(2) == 0, absurd(random));
      break;
    case 5:
    case 6:
      change_size(bytes, sizes, random);
      break;
    case 7:
      change_digits(bytes, random);
      break;
    case 8: {  // a piece of this file or of another one, in place of some or between
      const std::string& source = random.below(2) == 0 ? bytes : other;
      const std::string piece = source.substr(random.below(source.size() + 1), random.below(60));
      bytes.replace(at, random.below(2) == 0 ? piece.size() : 0, piece);
      break;
    }
    case 9:
      bytes.erase(at, random.below(40));
      break;
    default: {  // a block twice
      const std::string block = bytes.substr(at, 1 + random.below(512));
      bytes.insert(at, block);
    }
  }
}

}  // namespace cytra::io
