#include "config/json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/escape.h"

namespace cytra::config {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kDeepest = 64;

/// Builds the tree while the text is read.
struct JsonReader final : Json::json_sax_t {
  explicit JsonReader(const std::string& name) : file(std::make_shared<const std::string>(name)) {}

  bool null() override { return add(Kind::null); }
  bool boolean(bool value) override { return add(Kind::boolean, &Node::boolean, value); }
  bool number_integer(int64_t value) override { return add(Kind::integer, &Node::integer, value); }
  bool number_unsigned(uint64_t value) override {
    return value <= INT64_MAX ? add(Kind::integer, &Node::integer, static_cast<int64_t>(value))
                              : add(Kind::real, &Node::real, static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) override {
    return add(Kind::real, &Node::real, value);
  }
  bool string(std::string& value) override { return add(Kind::string, &Node::string, value); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Kind::map); }
  bool start_array(std::size_t) override { return open(Kind::list); }
  bool key(std::string& value) override {
    keys.back() = value;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at,
                   const std::string&,
                   const nlohmann::detail::exception&) override {
    throw DataError(*file + ": not JSON at byte " + std::to_string(at));
  }

  template <class T = bool>
  bool add(Kind kind, T Node::*field = nullptr, const T& value = T()) {
    Node node;
    node.kind = kind;
    node.origin.file = file;
    if (field != nullptr) node.*field = value;
    return put(std::move(node));
  }
  bool open(Kind kind) {
    if (open_nodes.size() >= kDeepest) throw DataError(*file + ": nested too deep");
    open_nodes.emplace_back();
    open_nodes.back().kind = kind;
    open_nodes.back().origin.file = file;
    keys.emplace_back();
    return true;
  }
  bool close() {
    Node done = std::move(open_nodes.back());
    open_nodes.pop_back();
    keys.pop_back();
    return put(std::move(done));
  }
  bool put(Node node) {
    if (open_nodes.empty()) {
      root = std::move(node);
    } else if (open_nodes.back().kind == Kind::list) {
      open_nodes.back().list.push_back(std::move(node));
    } else {
      open_nodes.back().map.emplace_back(std::move(keys.back()), std::move(node));
    }
    return true;
  }

  std::shared_ptr<const std::string> file;
  Node root;
  std::vector<Node> open_nodes;
  std::vector<std::string> keys;  // of each open node: that of the value to come
};

unsigned char byte_at(const std::string& text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// The bytes of the letter at `at`; 0 where there is no letter, or one that YAML may not hold or
/// that is a substitute.
std::size_t letter_size(const std::string& text, std::size_t at) {
  const auto [code, bytes] = utf8_letter(std::string_view(text).substr(at));
  const bool is_odd = (code >= 0x80 && code < 0xA0) || code == 0xFFFE || code == 0xFFFF;
  const bool is_substitute = code >= 0xF700 && code <= 0xF7FF;
  return is_odd || is_substitute ? 0 : bytes;
}

void make_utf8(std::string& text) {
  std::string made;
  for (std::size_t at = 0, size = 0; at < text.size(); at += std::max<std::size_t>(1, size)) {
    size = letter_size(text, at);
    if (size > 0) {
      made.append(text, at, size);
    } else {  // U+F700 + byte
      const unsigned byte = byte_at(text, at);
      made +=
          {'\xEF', static_cast<char>(0x9C + (byte >> 6)), static_cast<char>(0x80 + (byte & 63))};
    }
  }
  text = std::move(made);
}

void make_bytes(std::string& text) {
  std::string made;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const unsigned second = byte_at(text, at + 1);
    if (byte_at(text, at) == 0xEF && second >= 0x9C && second <= 0x9F) {
      made += static_cast<char>((second - 0x9C) << 6 | (byte_at(text, at + 2) & 63));
      at += 2;
    } else {
      made += text[at];
    }
  }
  text = std::move(made);
}

void change_texts(Node& node, void (*change)(std::string&)) {
  change(node.string);
  for (Node& child : node.list) change_texts(child, change);
  for (auto& [key, child] : node.map) {
    change(key);
    change_texts(child, change);
  }
}

void make_finite(Node& node) {
  if (node.kind == Kind::real && !std::isfinite(node.real)) node = Node();
  for (Node& child : node.list) make_finite(child);
  for (auto& [key, child] : node.map) make_finite(child);
}

}  // namespace

std::string to_plain_json(Node node) {
  make_finite(node);
  return to_json(node);
}

Node parse_json(const std::string& text, const std::string& name) {
  JsonReader reader(name);
  if (!Json::sax_parse(text, &reader)) throw DataError(name + ": not JSON");
  return std::move(reader.root);
}

Node to_utf8(Node node) {
  change_texts(node, make_utf8);
  return node;
}

Node from_utf8(Node node) {
  change_texts(node, make_bytes);
  return node;
}

}  // namespace cytra::config
