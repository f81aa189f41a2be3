#pragma once
// Describes the options of a struct, which visit() lists.
#include "config/schema.h"

namespace cytra::config {

template <class Options>
constexpr OptionsType options_type();

/// Collects the options that visit() lists.
class OptionLister {
 public:
  void operator()(const char* key, auto& field, const char* doc) { add(key, field, doc); }
  void operator()(const char* key, auto& field, const char* doc, Required) {
    add(key, field, doc).required = true;
  }
  void operator()(const char* key, auto& field, const char* doc, double low, double high) {
    OptionInfo& info = add(key, field, doc);
    info.low = low;
    info.high = high;
  }
  void operator()(const char* key, int64_t& field, const char* doc, const Keyword& keyword) {
    (*this)(key, field, doc, keyword.low, keyword.high);
    options.back().keyword = keyword.word;
  }
  void operator()(const char* key, auto& field, const char* doc, const Choices& choices) {
    add(key, field, doc).choices = choices;
  }
  void operator()(const char* key, Node& field, const char* doc, const Part& part) {
    OptionInfo& info = add(key, field, doc);
    info.type = OptionInfo::Type::part;
    info.part = part;
    info.required = part.form == Part::Form::one;
  }
  void operator()(const char* key, const Unused&, const char* doc) {
    Node none;
    add(key, none, doc).type = OptionInfo::Type::unused;
  }

  std::vector<OptionInfo> options;

 private:
  template <class T>
  OptionInfo& add(const char* key, const T& field, const char* doc) {
    OptionInfo& info = options.emplace_back();
    info.name = key;
    info.doc = doc;
    set_type<T>(info);
    info.value = value_of(field);
    return info;
  }
  template <class T>
  static void set_type(OptionInfo& info) {
    using Type = OptionInfo::Type;
    if constexpr (IsOptional<T>::value) {
      info.nullable = true;
      set_type<typename T::value_type>(info);
    } else if constexpr (IsVector<T>::value) {
      ++info.lists;
      set_type<typename T::value_type>(info);
    } else if constexpr (HasVisit<T>) {
      info.type = Type::options;
      info.options = options_type<T>();
    } else {
      info.type = std::is_same_v<T, bool>          ? Type::boolean
                  : std::is_same_v<T, int64_t>     ? Type::integer
                  : std::is_same_v<T, double>      ? Type::number
                  : std::is_same_v<T, std::string> ? Type::text
                                                   : Type::any;
    }
  }
  template <class T>
  static Node value_of(const T& field) {
    Node node;
    if constexpr (IsOptional<T>::value) {
      if (field) node = value_of(*field);
    } else if constexpr (IsVector<T>::value) {
      node = Node::make_list();
      for (const auto& item : field) node.list.push_back(value_of(item));
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                         std::is_same_v<T, double> || std::is_same_v<T, std::string>) {
      node = Node::make_value(field);
    }
    return node;
  }
};

/// The descriptions of all options, in the order of visit().
template <class Options>
std::vector<OptionInfo> describe_options() {
  Options options;
  OptionLister lister;
  options.visit(lister);
  return std::move(lister.options);
}

template <class Options>
constexpr OptionsType options_type() {
  OptionsType type{
      [](const Node& node, Problems& problems) { read_options<Options>(node, problems); },
      &describe_options<Options>};
  if constexpr (requires { Options::kPurpose; }) type.purpose = Options::kPurpose;
  return type;
}

template <class Options>
Part changes() {
  return {Part::Form::changes, nullptr, options_type<Options>()};
}

}  // namespace cytra::config
