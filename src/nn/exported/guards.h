#pragma once
// The conditions on the sides of an image that torch.export has noted.
#include <cstdint>
#include <string>
#include <vector>

namespace cytra::nn {

/// Whether a condition such as "(L['x'].size()[3] // 2) != 1" holds for an image of these sides,
/// (N,C,[D,]H,W): comparisons, sums, products, quotients, remainders, min, max, and, or, not. True
/// for what is no such condition.
bool holds(const std::string& guard, const std::vector<int64_t>& sides);
/// The factor k of a side k * symbol, as torch prints it; 1 for another one, `most` at most.
int64_t factor_of(const std::string& expression, int64_t most);
/// The name in "Symbol('s77', positive=True, integer=True)"; empty for another expression.
std::string symbol_in(const std::string& expression);

}  // namespace cytra::nn
