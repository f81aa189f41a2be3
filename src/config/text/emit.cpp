// Part of config/node.h: writes a tree as YAML and JSON.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/strings.h"
#include "config/node.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

/// The letters that YAML 1.1 takes for line breaks (U+0085, U+2028 and U+2029) or a mark (U+FEFF):
/// they must be escaped.
constexpr std::pair<std::string_view, const char*> odd_breaks[] = {{"\xc2\x85", "\\u0085"},
                                                                   {"\xe2\x80\xa8", "\\u2028"},
                                                                   {"\xe2\x80\xa9", "\\u2029"},
                                                                   {"\xef\xbb\xbf", "\\ufeff"}};

const std::pair<std::string_view, const char*>* odd_break_at(std::string_view text) {
  for (const auto& odd : odd_breaks) {
    if (text.substr(0, odd.first.size()) == odd.first) return &odd;
  }
  return nullptr;
}

bool has_odd_break(const std::string& text) {
  return std::ranges::any_of(
      odd_breaks, [&](const auto& odd) { return text.find(odd.first) != std::string::npos; });
}

/// Appends escaped text. `control`: how a control character begins, "\\x" in YAML, where a key
/// must stay below 1024 letters, or "\\u00" in JSON.
void append_escaped(const std::string& text, const char* control, std::string& out) {
  constexpr const char* hex = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (is_control(c)) {
          out += control;
          out += hex[static_cast<unsigned char>(c) >> 4];
          out += hex[c & 15];
        } else if (const auto* odd =
                       c < 0 ? odd_break_at(std::string_view(text).substr(i)) : nullptr) {
          out += odd->second;
          i += odd->first.size() - 1;
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

bool needs_quotes(const std::string& text, bool is_key) {
  if (text == "???") return is_key;  // a value that must be set is written as it was
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return true;
  if (std::string_view("!&*-?:|>@`%#'\",[]{}~<=").find(text.front()) != std::string_view::npos) {
    // A '-' before a word is fine: "-x".
    if (text.front() != '-' || text.size() < 2 || text[1] == ' ' || text[1] == '-') return true;
  }
  if (text.find(": ") != std::string::npos || text.find(" #") != std::string::npos) return true;
  if (text.find_first_of("[]{},") != std::string::npos && is_key) return true;
  if (text.size() == 1 && std::string_view("ynYN").find(text[0]) != std::string_view::npos)
    return true;
  if (text.substr(0, 3) == "..." || text.substr(0, 3) == "---") return true;
  Node typed;
  type_yaml_scalar(text, typed);
  // Keys are text whatever they look like; only null is refused as one.
  return is_key ? typed.kind == Kind::null : typed.kind != Kind::string;
}

void append_text(const std::string& text, bool is_key, std::string& out) {
  if (std::ranges::any_of(text, is_control) || has_odd_break(text)) {
    append_escaped(text, "\\x", out);
  } else if (needs_quotes(text, is_key)) {
    out += '\'';
    for (const char c : text) out.append(c == '\'' ? 2 : 1, c);
    out += '\'';
  } else {
    out += text;
  }
}

/// Appends a key. A key that was not written unquoted (key_origin) is text: 1 in `+k.1=...` is
/// '1', as in Hydra.
void append_key(const std::string& key, const Node& child, std::string& out) {
  Node typed;
  if (child.key_origin.file == nullptr) type_yaml_scalar(key, typed);
  if (typed.kind == Kind::null || typed.kind == Kind::string) return append_text(key, true, out);
  out += "'" + key + "'";
}

void append_scalar(const Node& node, std::string& out) {
  switch (node.kind) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += node.boolean ? "true" : "false";
      break;
    case Kind::integer:
      out += std::to_string(node.integer);
      break;
    case Kind::real:
      if (std::isfinite(node.real)) {
        out += real_text(node.real);
      } else {
        out += std::isnan(node.real) ? ".nan" : node.real > 0 ? ".inf" : "-.inf";
      }
      break;
    case Kind::string:
      append_text(node.string, false, out);
      break;
    case Kind::list:
      out += "[]";
      break;
    case Kind::map:
      out += "{}";
      break;
  }
}

bool is_empty(const Node& node) {
  return node.list.empty() && node.map.empty();
}

/// Writes the node; the indent of its first line is already written.
void append_block(const Node& node, std::size_t indent, std::string& out) {
  bool first = true;
  const auto start_line = [&] {
    if (!first) out.append(indent, ' ');
    first = false;
  };
  const auto append_child = [&](const Node& child) {
    const bool inline_child =
        (child.kind != Kind::map && child.kind != Kind::list) || is_empty(child);
    if (!inline_child) return append_block(child, indent + 2, out);
    append_scalar(child, out);
    out += '\n';
  };
  for (const Node& item : node.list) {
    start_line();
    out += "- ";
    append_child(item);
  }
  for (const auto& [key, child] : node.map) {
    start_line();
    append_key(key, child, out);
    out += ':';
    if ((child.kind == Kind::map || child.kind == Kind::list) && !is_empty(child)) {
      out += '\n';
      out.append(indent + 2, ' ');
    } else {
      out += ' ';
    }
    append_child(child);
  }
}

void append_json(const Node& node, std::string& out) {
  const char* separator = "";
  switch (node.kind) {
    case Kind::string:
      append_escaped(node.string, "\\u00", out);
      break;
    case Kind::list:
      out += '[';
      for (const Node& item : node.list) {
        out += separator;
        append_json(item, out);
        separator = ",";
      }
      out += ']';
      break;
    case Kind::map:
      out += '{';
      for (const auto& [key, child] : node.map) {
        out += separator;
        append_escaped(key, "\\u00", out);
        out += ':';
        append_json(child, out);
        separator = ",";
      }
      out += '}';
      break;
    case Kind::real:
      // JSON has no word for infinity and nan; as text they keep the file readable by every
      // parser.
      out += std::isfinite(node.real) ? real_text(node.real) : '"' + real_text(node.real) + '"';
      break;
    default:
      append_scalar(node, out);
  }
}

}  // namespace

std::string to_yaml(const Node& node) {
  std::string out;
  if ((node.kind != Kind::map && node.kind != Kind::list) || is_empty(node)) {
    append_scalar(node, out);
    return out + '\n';
  }
  append_block(node, 0, out);
  return out;
}

std::string to_json(const Node& node) {
  std::string out;
  append_json(node, out);
  return out;
}

}  // namespace cytra::config
