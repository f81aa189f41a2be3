#include "nn/exported/guards.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string_view>

#include "base/strings.h"

namespace cytra::nn {
namespace {

/// Thrown for what is no condition on sides.
struct NotACondition {};

/// Reads Python's expressions by recursive descent, and computes them.
class GuardReader {
 public:
  GuardReader(std::string_view text, const std::vector<int64_t>& sides)
      : text_(text), sides_(sides) {}
  int64_t read() {
    const int64_t value = disjunction();
    skip_spaces();
    if (at_ != text_.size()) throw NotACondition();
    return value;
  }

 private:
  static constexpr int kMostDepth = 64;

  int64_t disjunction() {
    int64_t value = conjunction();
    while (take_word("or")) {
      const int64_t other = conjunction();
      value = value != 0 ? value : other;
    }
    return value;
  }
  int64_t conjunction() {
    int64_t value = negation();
    while (take_word("and")) {
      const int64_t other = negation();
      value = value == 0 ? value : other;
    }
    return value;
  }
  int64_t negation() {
    if (!take_word("not")) return comparison();
    deepen();
    const int64_t value = negation() == 0 ? 1 : 0;
    --depth_;
    return value;
  }
  /// a < b <= c, too.
  int64_t comparison() {
    int64_t left = sum();
    bool is_true = true, is_one = false;
    for (std::string_view sign = comparison_sign(); !sign.empty(); sign = comparison_sign()) {
      const int64_t right = sum();
      is_true = is_true && compare(left, sign, right);
      is_one = true;
      left = right;
    }
    return is_one ? (is_true ? 1 : 0) : left;
  }
  std::string_view comparison_sign() {
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(sign)) return sign;
    return {};
  }
  static bool compare(int64_t left, std::string_view sign, int64_t right) {
    if (sign == "==") return left == right;
    if (sign == "!=") return left != right;
    if (sign == "<=") return left <= right;
    if (sign == ">=") return left >= right;
    return sign == "<" ? left < right : left > right;
  }
  int64_t sum() {
    int64_t value = product();
    for (;;) {
      const bool is_plus = take("+");
      if (!is_plus && !take("-")) return value;
      const int64_t other = product();
      if (is_plus ? __builtin_add_overflow(value, other, &value)
                  : __builtin_sub_overflow(value, other, &value))
        throw NotACondition();
    }
  }
  int64_t product() {
    int64_t value = factor();
    for (;;) {
      if (take("//")) {
        value = floor_divided(value, factor());
      } else if (take("*")) {
        const int64_t by = factor();
        if (__builtin_mul_overflow(value, by, &value)) throw NotACondition();
      } else if (take("%")) {
        value = remainder(value, factor());
      } else {
        return value;
      }
    }
  }
  int64_t factor() {
    deepen();
    const int64_t value = take("-") ? floor_divided(factor(), -1) : atom();
    --depth_;
    return value;
  }
  int64_t atom() {
    skip_spaces();
    if (take("(")) {
      const int64_t value = disjunction();
      expect(")");
      return value;
    }
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)
      return number();
    for (const bool is_least : {true, false}) {
      if (!take_word(is_least ? "min" : "max")) continue;
      expect("(");
      int64_t value = disjunction();
      while (take(",")) {
        const int64_t other = disjunction();
        value = is_least ? std::min(value, other) : std::max(value, other);
      }
      expect(")");
      return value;
    }
    if (take_word("True")) return 1;
    if (take_word("False")) return 0;
    return side();
  }
  /// L['x'].size()[2], also L['args'][0].size()[2]: there is one image.
  int64_t side() {
    if (!take_word("L")) throw NotACondition();
    const std::size_t size = text_.find(".size()[", at_);
    const std::size_t blank = text_.find_first_of(" )*/+-%<>=!", at_);
    if (size == std::string_view::npos || (blank != std::string_view::npos && blank < size))
      throw NotACondition();
    at_ = size + std::string_view(".size()[").size();
    const int64_t index = number();
    expect("]");
    if (index < 0 || index >= static_cast<int64_t>(sides_.size())) throw NotACondition();
    return sides_[static_cast<std::size_t>(index)];
  }
  int64_t number() {
    int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        throw NotACondition();
    }
    if (at_ == begin) throw NotACondition();
    return value;
  }

  void deepen() {
    if (++depth_ > kMostDepth) throw NotACondition();
  }
  /// Python's //, which rounds down.
  static int64_t floor_divided(int64_t value, int64_t by) {
    if (by == 0 || (by == -1 && value == std::numeric_limits<int64_t>::min()))
      throw NotACondition();
    return value / by - ((value % by != 0 && (value < 0) != (by < 0)) ? 1 : 0);
  }
  /// Python's %, which has the divisor's sign.
  static int64_t remainder(int64_t value, int64_t by) {
    if (by == 0) throw NotACondition();
    const int64_t rest = by == -1 ? 0 : value % by;
    return rest != 0 && (rest < 0) != (by < 0) ? rest + by : rest;
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool take_word(std::string_view word) {
    const std::size_t before = at_;
    if (!take(word)) return false;
    const bool ends =
        at_ == text_.size() ||
        (std::isalnum(static_cast<unsigned char>(text_[at_])) == 0 && text_[at_] != '_');
    if (!ends) at_ = before;
    return ends;
  }
  void expect(std::string_view token) {
    if (!take(token)) throw NotACondition();
  }

  std::string_view text_;
  const std::vector<int64_t>& sides_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

int64_t factor_of(const std::string& expression, int64_t most) {
  constexpr std::string_view kBegin = "Mul(Integer(";
  if (!expression.starts_with(kBegin)) return 1;
  int64_t factor = 0;
  for (std::size_t i = kBegin.size(); i < expression.size() && is_digit(expression[i]); ++i)
    factor = std::min<int64_t>(factor * 10 + expression[i] - '0', most);
  return std::max<int64_t>(factor, 1);
}

std::string symbol_in(const std::string& expression) {
  const std::size_t begin = expression.find("Symbol('");
  if (begin == std::string::npos) return "";
  const std::size_t end = expression.find('\'', begin + 8);
  return end == std::string::npos ? "" : expression.substr(begin + 8, end - begin - 8);
}

bool holds(const std::string& guard, const std::vector<int64_t>& sides) {
  try {
    return GuardReader(guard, sides).read() != 0;
  } catch (const NotACondition&) {
    return true;
  }
}

}  // namespace cytra::nn
