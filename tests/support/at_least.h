#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace cytra::test {

/// The entries of a golden file that a test goes through, one by one. Throws where they are fewer
/// than `least`: a test of nothing would pass.
template <class List>
List at_least(std::size_t least, List&& list) {  // List is a reference, or of a temporary its type
  if (list.size() < least) {
    throw std::runtime_error("expected at least " + std::to_string(least) +
                             " entries of a golden file, got " + std::to_string(list.size()));
  }
  return std::forward<List>(list);
}

}  // namespace cytra::test
