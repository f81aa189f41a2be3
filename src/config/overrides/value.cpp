#include "config/overrides/value.h"

#include <functional>
#include <stdexcept>

#include "base/error.h"
#include "base/strings.h"
#include "config/overrides/functions.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

constexpr int max_override_depth = 64;
constexpr std::size_t npos = std::string::npos;

bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

/// Parses a value by recursive descent.
class ValueParser {
 public:
  ValueParser(const std::string& text, std::size_t start, const Origin& origin, bool functions)
      : text_(text), origin_(origin), at_(start), functions_(functions) {
    if (functions_) match_parentheses();
  }

  /// Parses element (',' element)*.
  OverrideValue value() {
    skip_blanks();
    if (at_ == text_.size()) return {{make(Kind::string), ""}, {}};
    const std::size_t start = at_;
    OverrideValue first = element("");
    skip_blanks();
    if (at_ == text_.size()) return first;
    check_end();
    SweepValue sweep;
    sweep.kind = Override::Sweep::simple;
    sweep.choices.push_back(single(std::move(first), start));
    while (take(',')) {
      skip_blanks();
      const std::size_t place = at_;
      sweep.choices.push_back(single(element(""), place));
      skip_blanks();
      check_end();
    }
    return {{}, std::move(sweep)};
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    if (functions_) {
      Origin place = origin_;
      place.column = static_cast<int>(at) + 1;
      throw ConfigError(place.text() + ": " + what);
    }
    throw ConfigError(origin_.text() + ": at character " + std::to_string(at + 1) +
                      " of the value: " + what);
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
  std::size_t blanks_end(std::size_t at) const {
    while (at < text_.size() && is_blank(text_[at])) ++at;
    return at;
  }
  void skip_blanks() { at_ = blanks_end(at_); }

  void check_end() const {
    if (at_ == text_.size() || text_[at_] == ',') return;
    fail(at_, "text after the end of a value, expected ',', or quotes round the whole text");
  }

  TypedValue single(OverrideValue value, std::size_t at) const {
    if (value.sweep) fail(at, "values to try inside another value, expected one value");
    return value;
  }

  /// Parses one element. `stops`: what ends an unquoted text besides ',' ("]" inside a list); ""
  /// at the top.
  OverrideValue element(std::string_view stops) {
    skip_blanks();
    const std::size_t start = at_;
    OverrideValue result;
    if (calls_function(stops)) {
      result = call();
    } else {
      result.node = plain_element(stops);
    }
    if (result.sweep) return result;
    std::size_t end = at_;  // an escaped blank at the end is part of the text
    while (end > start && is_blank(text_[end - 1]) && !is_escaped(end - 1, start)) --end;
    result.text = text_.substr(start, end - start);
    return result;
  }
  bool is_escaped(std::size_t at, std::size_t start) const {
    std::size_t bars = 0;
    while (at - bars > start && text_[at - bars - 1] == '\\') ++bars;
    return bars % 2 == 1;
  }

  Node plain_element(std::string_view stops) {
    switch (peek()) {
      case '[':
        return list();
      case '{':
        return map();
      case '\'':
      case '"':
        return quoted(stops);
      default:
        return unquoted(stops);
    }
  }

  Node list() {
    Node node = make(Kind::list);
    enter();
    if (!take(']')) {
      do {
        skip_blanks();
        const std::size_t start = at_;
        node.list.push_back(single(element("]"), start).node);
        skip_blanks();
      } while (take(','));
      if (!take(']')) fail(at_, "the list does not end, expected ',' or ']'");
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
        const std::size_t start = at_;
        const bool in_quotes = peek() == '\'' || peek() == '"';
        const std::string key = in_quotes ? quoted(":").string : run(":}", true).first;
        skip_blanks();
        if (key.empty() || key.size() > 200)
          fail(start, "a key is empty or too long, expected key: value");
        if (!take(':')) fail(at_, "the key '" + key + "' has no value, expected ':'");
        skip_blanks();
        const std::size_t place = at_;
        node.set(key, single(element("}"), place).node);
        if (!in_quotes) node.map.back().second.key_origin = origin_;  // else it is text: emit.cpp
        skip_blanks();
      } while (take(','));
      if (!take('}')) fail(at_, "the map does not end, expected ',' or '}'");
    }
    --depth_;
    return node;
  }

  void enter() {
    if (++depth_ > max_override_depth) fail(at_, "nested too deep, expected at most 64 levels");
    ++at_;
    skip_blanks();
  }

  /// The end of the quoted text at `at`, or npos; only backslashes directly before a quote of the
  /// same kind are special.
  std::size_t quoted_end(std::size_t at, std::string* content) const {
    const char quote = text_[at++];
    while (at < text_.size()) {
      const std::size_t start = at;
      while (at < text_.size() && text_[at] == '\\') ++at;
      const std::size_t bars = at - start;
      if (at == text_.size()) break;
      const char c = text_[at++];
      if (c != quote) {
        if (content != nullptr) content->append(text_, start, at - start);
        continue;
      }
      if (content != nullptr) content->append(bars / 2, '\\');
      if (bars % 2 == 0) return at;
      if (content != nullptr) *content += quote;
    }
    return npos;
  }

  Node quoted(std::string_view stops) {
    Node node = make(Kind::string);
    node.quoted = true;
    const std::size_t end = quoted_end(at_, &node.string);
    if (end == npos) {
      fail(at_,
           std::string("the quoted text does not end, expected a ") + text_[at_] + " at its end");
    }
    at_ = end;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] != ',' && !is_one_of(text_[at_], stops))
      fail(at_, "text touches a quoted part, expected quotes round the whole value");
    return node;
  }

  Node unquoted(std::string_view stops) {
    const std::size_t start = at_;
    auto [text, raw] = run(stops, false);
    if (at_ == start)
      fail(at_, "a value is missing, expected text, a number, '...', [...] or {...}");
    Node node = make(Kind::string);
    if (raw) {
      type_override_scalar(text, node);
    } else {
      node.string = std::move(text);
    }
    return node;
  }

  /// Reads text up to ',' or one of `stops`, unescaped and trimmed; and whether it had no escapes
  /// and no ${...}. Inside a call, parentheses of the text must be in pairs.
  std::pair<std::string, bool> run(std::string_view stops, bool is_key) {
    std::string result;
    bool raw = true;
    int open = 0;
    const std::size_t start = at_;
    std::size_t kept = 0;  // an escaped blank at the end is not trimmed
    for (; at_ < text_.size();) {
      const char c = text_[at_];
      if (stops == ")" && c == ')' && open > 0) {
        --open;
      } else if (c == ',' || is_one_of(c, stops)) {
        break;
      } else if (is_one_of(c, "[]{}'\"")) {
        fail(at_,
             std::string("a stray ") + c +
                 ", expected quotes round the whole text that has brackets or quotes");
      } else if (c == '(') {
        if (at_ == start && !is_key)
          fail(at_, "text that begins with '(', expected quotes round the whole text");
        ++open;
      } else if (c == '~' && !is_key) {
        fail(at_,
             "an unquoted ~, expected quotes round the whole text, or $HOME for the home folder");
      }
      if (c == '$' && at_ + 1 < text_.size() && text_[at_ + 1] == '{' && !is_key) {
        const std::size_t end = interpolation_end();
        result.append(text_, at_, end - at_);
        at_ = end;
        raw = false;
      } else if (c == '\\' && at_ + 1 < text_.size() &&
                 is_one_of(text_[at_ + 1], "\\()[]{}:=, \t")) {
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

  /// The end of a ${...}; unlike in Hydra, nested ${...} and quotes are followed.
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
    fail(at_, "the '${' does not end, expected '}'");
  }

  /// Finds where each '(' closes, in one pass, so that looking ahead is fast.
  void match_parentheses() {
    if (text_.find('(', at_) == npos) return;
    closes_.assign(text_.size(), npos);
    std::vector<std::size_t> open;
    bool at_start = true;  // of an element, where a quote begins a quoted text
    for (std::size_t i = at_; i < text_.size(); ++i) {
      const char c = text_[i];
      if (at_start && (c == '\'' || c == '"')) {
        const std::size_t end = quoted_end(i, nullptr);
        if (end == npos) return;
        i = end - 1;
      } else if (c == '\\') {
        ++i;
      } else if (c == '(') {
        open.push_back(i);
      } else if (c == ')' && !open.empty()) {
        closes_[open.back()] = i;
        open.pop_back();
      }
      at_start = is_one_of(c, "(,[{:=") || (at_start && is_blank(c));
    }
  }

  std::size_t name_end(std::size_t at) const {
    if (at >= text_.size() || !(is_letter(text_[at]) || text_[at] == '_')) return at;
    while (at < text_.size() &&
           (is_letter(text_[at]) || is_digit(text_[at]) || text_[at] == '_' || text_[at] == '-'))
      ++at;
    return at;
  }

  /// Whether this element is NAME(...) as a whole. Other text with '(' stays text: "/data/img
  /// (1).tif".
  bool calls_function(std::string_view stops) const {
    const std::size_t end = name_end(at_), open = blanks_end(end);
    if (closes_.empty() || end == at_ || open >= text_.size() || text_[open] != '(') return false;
    const std::string name = text_.substr(at_, end - at_);
    const std::size_t close = closes_[open];
    const std::size_t after = close == npos ? npos : blanks_end(close + 1);
    const bool whole = close != npos && (after == text_.size() || text_[after] == ',' ||
                                         is_one_of(text_[after], stops));
    if (is_function(name)) return whole || open == end;
    if (whole && open == end) {
      fail(at_,
           "unknown function '" + name + "', expected a known one or quotes, which make it text." +
               suggestion(name, function_names()));
    }
    return false;
  }

  OverrideValue call() {
    const std::size_t start = at_;
    FunctionCall result;
    result.name = text_.substr(at_, name_end(at_) - at_);
    at_ = blanks_end(start + result.name.size());
    enter();
    if (!take(')')) {
      do {
        skip_blanks();
        const std::size_t place = at_, name = name_end(at_);
        std::string key;
        if (const std::size_t equals = blanks_end(name);
            name > at_ && equals < text_.size() && text_[equals] == '=') {
          key = text_.substr(at_, name - at_);
          at_ = equals + 1;
        } else if (!result.named.empty()) {
          fail(place, "a value without a name after one with a name, expected name=value");
        }
        OverrideValue value = element(")");
        skip_blanks();
        if (key.empty()) {
          result.arguments.push_back(std::move(value));
        } else {
          result.named.emplace_back(key, std::move(value));
        }
      } while (take(','));
      if (!take(')'))
        fail(at_, "the call of " + result.name + "() does not end, expected ',' or ')'");
    }
    --depth_;
    // Equal texts give the same order, in every process of a run, and when it is run again.
    result.seed = std::hash<std::string_view>()(std::string_view(text_).substr(start, at_ - start));
    try {
      return call_function(std::move(result));
    } catch (const std::invalid_argument& error) {
      fail(start, error.what());
    }
  }

  const std::string& text_;
  const Origin& origin_;
  std::size_t at_;
  bool functions_;
  int depth_ = 0;
  std::vector<std::size_t> closes_;
};

}  // namespace

OverrideValue parse_override_value(const std::string& text,
                                   std::size_t start,
                                   const Origin& origin,
                                   bool functions) {
  return ValueParser(text, start, origin, functions).value();
}

}  // namespace cytra::config
