#pragma once
// How an Options struct declares its options. Every visitor takes these forms:
//   struct Options {
//     int64_t width = 8;
//     void visit(auto& v) {
//       v("width", width, "features");                          // key, field, help
//       v("width", width, "features", 1, 64);                   // with a range
//       v("batch", batch, "images", config::Keyword{1, 64, "AUTO", 0});  // ... or a word
//       v("mode", mode, "border", {"same", "valid"});           // a text out of these
//       v("keys", keys, "what to load", config::required);      // must be there
//       v("loss", loss, "minimised", config::component<Loss>());  // a Node: a Part (registry.h)
//       v("tags", config::Unused{}, "of CytoDL");               // taken, but nothing reads it
//     }
//     void check();  // may follow: throws ConfigError for what no option can say alone, and may
//   };               // fill in what follows from others
// Fields: bool, int64_t, double, std::string, Options structs, config::Node; std::optional (null)
// and std::vector of these.
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace cytra::config {

class OptionReader;
struct Part;

struct Required {};
inline constexpr Required required;

using Choices = std::vector<std::string>;  // what a text may be

/// A key that CytoDL's configurations have and nothing reads here. A value other than null and
/// those of `same` (as plain text) expects an effect, and is noted; an empty `same` accepts every
/// value.
struct Unused {
  std::vector<std::string> same = {};
};

/// A range, or a word, in any case, that stands for a value.
struct Keyword {
  double low, high;
  const char* word;
  int64_t value;
};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T>
concept HasVisit = requires(T& options, OptionReader& reader) {
  options.visit(reader);
};

}  // namespace cytra::config
