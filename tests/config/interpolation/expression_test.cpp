#include "config/interpolation/expression.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/text/python_text.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

std::string expression_error(const std::string& text) {
  return message_of<ConfigError>([&] { evaluate_expression(text); });
}
std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Expression, ValuesPrintAsPython) {
  EXPECT_EQ(python_repr(evaluate_expression("[1, [2.0, 'x'], None]")), "[1, [2.0, 'x'], None]");
  EXPECT_EQ(python_str(evaluate_expression("'ZYX' if 3 == 3 else 'YX'")), "ZYX");
  EXPECT_EQ(python_str(evaluate_expression("null if true else false")), "None");
}

TEST(Expression, ErrorsShowPositionAndWhatIsExpected) {
  EXPECT_EQ(expression_error("1 + nope"),
            "the expression '1 + nope' at character 5: unknown name 'nope', expected a value (text "
            "stands in quotes)");
  EXPECT_EQ(
      expression_error("max(1, 2) / 0"),
      "the expression 'max(1, 2) / 0' at character 11: division by zero, expected another number");
  EXPECT_EQ(expression_error("1 +"),
            "the expression '1 +' at character 4: the expression ends, expected a value");
  EXPECT_EQ(
      expression_error("'a' + 1"),
      "the expression ''a' + 1' at character 5: text + an integer, expected two numbers, texts "
      "or lists");
  EXPECT_EQ(expression_error("[0] * 2"),
            "the expression '[0] * 2' at character 5: a list * an integer, expected two numbers");
  EXPECT_EQ(expression_error("9223372036854775807 + 1"),
            "the expression '9223372036854775807 + 1' at character 21: an integer over 64 bits, "
            "expected a smaller one (1.0 * makes it a real number)");
}

TEST(Expression, WhatPythonHasAndEvalNotIsRefusedByName) {
  EXPECT_EQ(
      expression_error("[x for x in [1]]"),
      "the expression '[x for x in [1]]' at character 2: eval has no comprehensions; it has "
      "decimal numbers, texts in quotes, [lists], True, False, None, + - * / // %, == != < <= "
      "> >=, and, or, not, a if c else b, float, int, len, max, min, str");
  for (const auto& [text, name] : {std::pair("2 ** 3", "'**'"),
                                   std::pair("1 << 2", "'<<'"),
                                   std::pair("~1", "'~'"),
                                   std::pair("1 = 1", "'='"),
                                   std::pair("1 in [1]", "'in'"),
                                   std::pair("1 not in [1]", "'not in'"),
                                   std::pair("None is None", "'is'"),
                                   std::pair("[1, 2][0]", "indexing"),
                                   std::pair("(1, 2)", "tuples"),
                                   std::pair("()", "tuples"),
                                   std::pair("{'a': 1}", "'{'"),
                                   std::pair("'a'.upper()", "'.'"),
                                   std::pair("lambda: 1", "'lambda'"),
                                   std::pair("'a\\n'", "'\\' in texts"),
                                   std::pair("0x1F", "number '0x1F'"),
                                   std::pair("flaot(1)", "function 'flaot' (rather float);"),
                                   std::pair("round(1.5)", "function 'round'")}) {
    EXPECT_NE(expression_error(text).find(std::string("eval has no ") + name), std::string::npos)
        << expression_error(text);
  }
}

TEST(Expression, Limits) {
  EXPECT_NE(expression_error(std::string(20'000, '1')).find("at most 10,000"), std::string::npos);
  for (const auto& [open, close] : {std::pair("(", ")"),
                                    std::pair("[", "]"),
                                    std::pair("int(", ")"),
                                    std::pair("1 if 1 else ", "")})
    EXPECT_NE(expression_error(repeat(open, 500) + "1" + repeat(close, 500)).find("at most 64"),
              std::string::npos)
        << open;
  // Long, but not deep.
  EXPECT_EQ(evaluate_expression("1" + repeat("+1", 4000)).integer, 4001);
  EXPECT_EQ(evaluate_expression(repeat("not ", 2000) + "1").boolean, true);
  EXPECT_EQ(evaluate_expression(repeat("-", 9000) + "1").integer, 1);
  EXPECT_EQ(evaluate_expression("1" + repeat(" or 1", 1500)).integer, 1);
}

}  // namespace
}  // namespace cytra::config
