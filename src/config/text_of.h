#pragma once
// Writes options as text, for stamps of files that depend on them.
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "config/node.h"
#include "config/visit.h"

namespace cytra::config {

/// Writes each option that visit() lists, except keys that are left out. An option that is added
/// later is in the text automatically.
class OptionWriter {
 public:
  explicit OptionWriter(const std::vector<std::string_view>& left_out) : left_out_(left_out) {}
  template <class T, class... Form>
  void operator()(const char* key, T& field, const char* /*doc*/, const Form&... /*form*/) {
    if (contains(left_out_, key)) return;
    text += key;
    text += '=';
    write(field);
    text += ';';
  }
  void operator()(const char* key, auto& field, const char* doc, const Choices& /*choices*/) {
    (*this)(key, field, doc);
  }
  void operator()(const char* /*key*/, const Unused& /*unused*/, const char* /*doc*/) {}

  std::string text;

 private:
  template <class T>
  void write(T& field) {
    if constexpr (IsOptional<T>::value) {
      if (field) return write(*field);
      text += "null";
    } else if constexpr (IsVector<T>::value) {
      text += '[';
      for (auto item : field) {
        write(item);
        text += ',';
      }
      text += ']';
    } else if constexpr (HasVisit<T>) {
      text += '{';
      field.visit(*this);
      text += '}';
    } else if constexpr (std::is_same_v<T, Node>) {
      text += to_json(field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      text += to_json(Node::make_string(field));
    } else {
      text += fmt::format("{}", field);
    }
  }
  const std::vector<std::string_view>& left_out_;
};

/// Every option of `options` with its value, in the order of visit(). `left_out`: keys, at any
/// depth, that do not affect what the text is a stamp of.
template <class Options>
std::string text_of(Options options, const std::vector<std::string_view>& left_out = {}) {
  OptionWriter writer(left_out);
  options.visit(writer);
  return std::move(writer.text);
}

}  // namespace cytra::config
