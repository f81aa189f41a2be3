#include "config/overrides.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "config/scalar.h"

namespace cytra::config {
namespace {

constexpr int max_depth = 64;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// Recursive descent over the text after `key=`.
class ValueParser {
 public:
  ValueParser(std::string_view text, const Origin& origin) : text_(text), origin_(origin) {}

  /// element (',' element)*; several mean a sweep.
  std::vector<Node> values() {
    std::vector<Node> result;
    skip_blanks();
    if (at_ == text_.size()) {
      result.push_back(make(Kind::string));
      return result;
    }
    do {
      result.push_back(element(""));
      skip_blanks();
    } while (take(','));
    if (at_ != text_.size()) fail("text after the end of the value", "',' or nothing");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    throw ConfigError(origin_.text() + ": at character " + std::to_string(at_ + 1) +
                      " of the value: " + what + ", expected " + expected);
  }
  Node make(Kind kind) const {
    Node node;
    node.kind = kind;
    node.origin = origin_;
    return node;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  /// `stops`: what ends an unquoted text besides ',' ("]" inside a list); "" at the top.
  Node element(std::string_view stops) {
    skip_blanks();
    switch (peek()) {
      case '[':
        return list();
      case '{':
        return map();
      case '\'':
      case '"':
        return quoted();
      default:
        return unquoted(stops);
    }
  }

  Node list() {
    Node node = make(Kind::list);
    enter();
    if (!take(']')) {
      do {
        node.list.push_back(element("]"));
        skip_blanks();
      } while (take(','));
      if (!take(']')) fail("the list does not end", "',' or ']'");
    }
    --depth_;
    return node;
  }

  Node map() {
    Node node = make(Kind::map);
    enter();
    if (!take('}')) {
      do {
        skip_blanks();
        const bool in_quotes = peek() == '\'' || peek() == '"';
        std::string key = in_quotes ? quoted().string : run(":}", true).first;
        skip_blanks();
        if (key.empty() || key.size() > 200) fail("a key is empty or too long", "key: value");
        if (!take(':')) fail("the key '" + key + "' has no value", "':'");
        node.set(key, element("}"));
        skip_blanks();
      } while (take(','));
      if (!take('}')) fail("the map does not end", "',' or '}'");
    }
    --depth_;
    return node;
  }

  void enter() {
    if (++depth_ > max_depth) fail("nested too deep", "at most 64 levels");
    ++at_;
    skip_blanks();
  }

  /// Only backslashes directly before a quote of the same kind are special.
  Node quoted() {
    Node node = make(Kind::string);
    node.quoted = true;
    const char quote = text_[at_++];
    while (at_ < text_.size()) {
      const std::size_t start = at_;
      while (peek() == '\\') ++at_;
      const std::size_t bars = at_ - start;
      if (at_ == text_.size()) break;
      const char c = text_[at_++];
      if (c != quote) {
        node.string.append(text_, start, at_ - start);
        continue;
      }
      node.string.append(bars / 2, '\\');
      if (bars % 2 == 0) {
        check_alone();
        return node;
      }
      node.string += quote;
    }
    fail("the quoted text does not end", std::string(1, quote));
  }
  void check_alone() {
    skip_blanks();
    if (at_ < text_.size() && std::string_view(",]}:").find(text_[at_]) == std::string_view::npos) {
      fail("text touches a quoted part", "quotes round the whole value");
    }
  }

  Node unquoted(std::string_view stops) {
    const std::size_t start = at_;
    auto [text, raw] = run(stops, false);
    if (at_ == start) fail("a value is missing", "text, a number, '...', [...] or {...}");
    Node node = make(Kind::string);
    if (raw) {
      type_override_scalar(text, node);
      check_function(text);
    } else {
      node.string = std::move(text);
    }
    return node;
  }

  /// Text up to ',' or one of `stops`, unescaped and trimmed; and whether it had no escapes and no
  /// ${...}.
  std::pair<std::string, bool> run(std::string_view stops, bool is_key) {
    std::string result;
    bool raw = true;
    std::size_t kept = 0;  // an escaped blank at the end is not trimmed
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ',' || stops.find(c) != std::string_view::npos) break;
      if (!stops.empty() && std::string_view("[]{}").find(c) != std::string_view::npos) {
        fail(std::string("a bare '") + c + "'", "quotes round text that has brackets");
      }
      if (c == '$' && at_ + 1 < text_.size() && text_[at_ + 1] == '{' && !is_key) {
        const std::size_t end = interpolation_end();
        result.append(text_, at_, end - at_);
        at_ = end;
        raw = false;
      } else if (c == '\\' && at_ + 1 < text_.size() &&
                 std::string_view("\\()[]{}:=, \t").find(text_[at_ + 1]) !=
                     std::string_view::npos) {
        result += text_[at_ + 1];
        at_ += 2;
        raw = false;
        kept = result.size();
      } else {
        result += c;
        ++at_;
      }
    }
    while (result.size() > kept && is_blank(result.back())) result.pop_back();
    return {std::move(result), raw};
  }

  /// Unlike Hydra's, nested ${...} and quotes are followed.
  std::size_t interpolation_end() const {
    int open = 0;
    char quote = '\0';
    for (std::size_t i = at_; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote != '\0') {
        if (c == '\\') ++i;
        if (c == quote) quote = '\0';
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '{') {
        ++open;
      } else if (c == '}' && --open == 0) {
        return i + 1;
      }
    }
    fail("the '${' does not end", "'}'");
  }

  void check_function(const std::string& text) const {
    static const std::vector<std::string> functions = {"int",
                                                       "float",
                                                       "str",
                                                       "bool",
                                                       "sort",
                                                       "shuffle",
                                                       "choice",
                                                       "range",
                                                       "interval",
                                                       "glob",
                                                       "tag",
                                                       "extend_list"};
    const std::size_t end = text.find('(');
    if (end == std::string::npos) return;
    if (std::find(functions.begin(), functions.end(), trim(text.substr(0, end))) == functions.end())
      return;
    fail("functions such as " + text.substr(0, end) + "() are not supported",
         "a value, or quotes round the text");
  }

  std::string_view text_;
  const Origin& origin_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

void check_key(const std::string& key, const Override& override, const char* what) {
  if (key.empty() || key.size() > 1000) {
    throw ConfigError(override.where() + ": the " + what +
                      " is empty or too long, expected key=value");
  }
  const bool ends_badly = std::string_view("./-").find(key.front()) != std::string_view::npos ||
                          key.back() == '.' || key.back() == '/' ||
                          key.find("..") != std::string::npos;
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80 ||
           std::string_view("_-$./").find(c) != std::string_view::npos;
  };
  if (!ends_badly && std::all_of(key.begin(), key.end(), allowed)) return;
  throw ConfigError(override.where() + ": '" + key + "' is no " + what +
                    ", expected letters, digits, '_', '-', '$' with '.' or '/' between");
}

}  // namespace

Override parse_override(const std::string& text) {
  Override result;
  result.origin.file = std::make_shared<const std::string>(text);
  std::size_t start = 0;
  if (starts_with(text, "++")) {
    result.action = Override::Action::force;
    start = 2;
  } else if (starts_with(text, "+")) {
    result.action = Override::Action::add;
    start = 1;
  } else if (starts_with(text, "~")) {
    result.action = Override::Action::remove;
    start = 1;
  }
  const std::size_t equals = text.find('=', start);
  if (equals == std::string::npos && result.action != Override::Action::remove) {
    throw ConfigError(result.where() +
                      ": no '=', expected key=value, +key=value, ++key=value or ~key");
  }
  result.key = text.substr(start, equals == std::string::npos ? equals : equals - start);
  if (const std::size_t at = result.key.find('@'); at != std::string::npos) {
    result.package = result.key.substr(at + 1);
    result.key.erase(at);
    if (!result.package->empty()) check_key(*result.package, result, "package");
  }
  check_key(result.key, result, "key");
  if (equals != std::string::npos) {
    result.values = ValueParser(std::string_view(text).substr(equals + 1), result.origin).values();
  }
  return result;
}

Node parse_value(const std::string& text, const Origin& origin) {
  std::vector<Node> values = ValueParser(text, origin).values();
  if (values.size() == 1) return std::move(values[0]);
  throw ConfigError(origin.text() + ": '" + text.substr(0, 200) +
                    "' has a bare comma, expected [a, b] or quotes");
}

}  // namespace cytra::config
