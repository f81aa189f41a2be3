#pragma once
// The grammar of text with ${...}. Source: OmegaConf 2.3's OmegaConfGrammarLexer.g4 and
// OmegaConfGrammarParser.g4.
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace cytra::config {

struct Interpolation;

/// A piece of text: literal characters, or one ${...}.
struct Piece {
  std::string text;
  std::shared_ptr<const Interpolation> inside;
};

/// A text with ${...} in it, or an argument of a ${name:...}.
struct Element {
  enum class Kind { scalar, text, list, map };
  Kind kind = Kind::text;
  Node scalar;                 // null, a boolean, a number
  std::vector<Piece> parts;    // of a text
  bool quoted = false;         // text even when it is one ${...}
  std::vector<Node> keys;      // of a map
  std::vector<Element> items;  // of a list, the values of a map
};

/// An interpolation: ${a.b} or ${name:arguments}.
struct Interpolation {
  std::string source;  // as written, "${a.b}"
  bool is_call = false;
  std::vector<Piece> name;  // the key with its dots and brackets, or the name of a function
  std::vector<Element> arguments;
};

/// An error that says what is wrong and where: "'${a b}' at character 5: ' ', expected '}'".
struct SyntaxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Whether `text` must be parsed; text without ${ is taken as it is, backslashes too.
inline bool has_interpolation(std::string_view text) {
  return text.find("${") != std::string_view::npos;
}
/// Parses a value as it is written in a file. `text` holds a ${. Throws: SyntaxError, also when
/// brackets, quotes and ${...} nest deeper than 64.
Element parse_interpolated(std::string_view text);
/// Parses one argument, as ${oc.decode:...} reads it: `1`, `[a, ${b}]`, `{k: 'v'}`, `some words`.
Element parse_argument(std::string_view text);

}  // namespace cytra::config
