#include "nn/exported/guards.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/strings.h"
#include "config/interpolation/expression.h"

namespace cytra::nn {

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
  constexpr std::string_view kSide = ".size()[";
  std::string text = guard;  // L['x'].size()[2], also L['args'][0].size()[2]: there is one image
  for (std::size_t size = text.find(kSide); size != std::string::npos; size = text.find(kSide)) {
    const std::size_t begin = text.rfind("L[", size), number = size + kSide.size(),
                      end = text.find(']', number);
    if (end == std::string::npos || text.find_first_of(" )*/+-%<>=!", begin) < size) return true;
    std::size_t side = sides.size();
    std::from_chars(text.data() + number, text.data() + end, side);
    if (begin == std::string::npos || side >= sides.size()) return true;
    text.replace(begin, end + 1 - begin, std::to_string(sides[side]));
  }
  try {
    return config::evaluate_expression("(" + text + ") != 0").boolean;
  } catch (const ConfigError&) {
    return true;
  }
}

}  // namespace cytra::nn
