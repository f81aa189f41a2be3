#include "config/text/python_text.h"

#include <algorithm>
#include <charconv>

#include "config/text/scalar.h"

namespace cytra::config {
namespace {

/// The code point at text[i] and, in `size`, its bytes; broken UTF-8 counts byte by byte.
uint32_t code_point(std::string_view text, std::size_t i, std::size_t& size) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(i);
  size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  if (i + size > text.size()) size = 1;
  if (size == 1) return first;
  uint32_t point = first & (0x7FU >> size);
  for (std::size_t k = 1; k < size; ++k) point = point << 6U | (byte(i + k) & 0x3FU);
  return point;
}

/// Whether Python's str.isprintable() is false for a character: controls, unusual blanks, marks of
/// direction, private use. Code points that are not assigned yet count as printable here.
bool is_hidden(uint32_t point) {
  constexpr std::pair<uint32_t, uint32_t> ranges[] = {{0x7F, 0xA0},
                                                      {0xAD, 0xAD},
                                                      {0x600, 0x605},
                                                      {0x61C, 0x61C},
                                                      {0x6DD, 0x6DD},
                                                      {0x70F, 0x70F},
                                                      {0x1680, 0x1680},
                                                      {0x180E, 0x180E},
                                                      {0x2000, 0x200F},
                                                      {0x2028, 0x202F},
                                                      {0x205F, 0x206F},
                                                      {0x3000, 0x3000},
                                                      {0xD800, 0xF8FF},
                                                      {0xFEFF, 0xFEFF},
                                                      {0xFFF9, 0xFFFB},
                                                      {0xFFFE, 0xFFFF},
                                                      {0xE0001, 0xE007F},
                                                      {0xF0000, 0x10FFFF}};
  return std::ranges::any_of(
      ranges, [&](const auto& range) { return point >= range.first && point <= range.second; });
}

void append_hex(uint32_t value, int digits, std::string& out) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out += "0123456789abcdef"[value >> static_cast<unsigned>(shift) & 15U];
}

void append_repr(std::string_view text, std::string& out) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char mark = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += mark;
  std::size_t size = 1;
  for (std::size_t i = 0; i < text.size(); i += size) {
    const uint32_t point = code_point(text, i, size);
    if (point == '\\' || point == static_cast<uint32_t>(mark)) {
      out += '\\';
      out += static_cast<char>(point);
    } else if (point == '\n' || point == '\r' || point == '\t') {
      out += point == '\n' ? "\\n" : point == '\r' ? "\\r" : "\\t";
    } else if (point >= 0x20 && !is_hidden(point)) {
      out.append(text.substr(i, size));
    } else {
      out += point < 0x100 ? "\\x" : point < 0x10000 ? "\\u" : "\\U";
      append_hex(point, point < 0x100 ? 2 : point < 0x10000 ? 4 : 8, out);
    }
  }
  out += mark;
}

void append_repr(const Node& node, std::string& out) {
  const char* separator = "";
  switch (node.kind) {
    case Kind::null:
      out += "None";
      break;
    case Kind::boolean:
      out += node.boolean ? "True" : "False";
      break;
    case Kind::integer:
      out += std::to_string(node.integer);
      break;
    case Kind::real:
      out += real_text(node.real);
      break;
    case Kind::string:
      append_repr(node.string, out);
      break;
    case Kind::list:
      out += '[';
      for (const Node& item : node.list) {
        out += separator;
        append_repr(item, out);
        separator = ", ";
      }
      out += ']';
      break;
    case Kind::map:
      out += '{';
      for (const auto& [key, child] : node.map) {
        out += separator;
        append_repr(key, out);
        out += ": ";
        append_repr(child, out);
        separator = ", ";
      }
      out += '}';
      break;
  }
}

}  // namespace

bool read_python_integer(std::string_view text, int64_t& value) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_sign = i == 0 && (text[i] == '-' || text[i] == '+');
    const bool is_bar = text[i] == '_' && !digits.empty() && std::isdigit(digits.back()) != 0 &&
                        text[i - 1] != '_' && i + 1 < text.size();
    if (!is_sign && !is_bar && (text[i] < '0' || text[i] > '9')) return false;
    if (!is_bar && text[i] != '+') digits += text[i];
  }
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

std::string python_repr(std::string_view text) {
  std::string out;
  append_repr(text, out);
  return out;
}

std::string python_repr(const Node& node) {
  std::string out;
  append_repr(node, out);
  return out;
}

std::string python_str(const Node& node) {
  return node.kind == Kind::string ? node.string : python_repr(node);
}

}  // namespace cytra::config
