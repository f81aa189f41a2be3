#pragma once
// Evaluates ${eval:...}: a small part of Python's expressions. Source: Python 3's language
// reference, section 6.
#include <string>

#include "config/interpolation/value.h"

namespace cytra::config {

/// Evaluates an expression of: decimal numbers (integers of 64 bits), text in '..' or "..", True,
/// False, None (true, false, null), lists; + - * / // %, comparisons and their chains, and, or,
/// not, `a if c else b`; the functions float, int, len, max, min, str. Values are Python's. Throws:
/// ConfigError that shows the expression and the position of the mistake, also for more than
/// 10,000 characters, 64 levels, or results of more than 100,000 characters and items.
Value evaluate_expression(const std::string& text);

}  // namespace cytra::config
