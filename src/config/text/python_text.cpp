#include "config/text/python_text.h"

#include <fmt/format.h>

#include "base/escape.h"
#include "base/unicode.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

void append_repr(std::string_view text, std::string& out) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char mark = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += mark;
  while (!text.empty()) {
    const auto [letter, bytes] = utf8_letter(text);
    const uint32_t code = bytes == 0 ? static_cast<unsigned char>(text[0]) : letter;
    if (code == '\\' || code == static_cast<uint32_t>(mark)) {
      out += {'\\', static_cast<char>(code)};
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (bytes > 0 && is_printable(code)) {
      out += text.substr(0, bytes);
    } else {
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
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
    default:
      out += plain_text(node);
  }
}

}  // namespace

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
