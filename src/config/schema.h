#pragma once
// Describes what a configuration may hold, without C++ types: for checking parts that are made
// later, for `--describe`, and for editors. Built when asked for, never at start-up.
#include <map>
#include <string>
#include <vector>

#include "config/options.h"

namespace cytra::config {

struct OptionInfo;

/// An Options struct without its C++ type: how a map is checked against it, and its options.
struct OptionsType {
  void (*check)(const Node& node, Problems& problems);
  std::vector<OptionInfo> (*describe)();
  const char* purpose = nullptr;  // Options::kPurpose; null: it says none
};

/// The registered classes of a kind ("loss"), by name.
struct Components {
  std::string kind;
  std::map<std::string, OptionsType> types;

  std::vector<std::string> names() const;
  /// The registered name that node["_target_"] means: `torch.optim.AdamW`,
  /// `monai.networks.nets.DynUNet` and similar names stand for their last part. Throws:
  /// ConfigError with the nearest name.
  std::string name_of(const Node& node) const;
};

/// The last part of a Python path into a library whose names Cytra uses (torch, monai, cyto_dl,
/// lightning), else `target`.
std::string own_name(const std::string& target);

/// The noun with its article: "an optimizer". bound_text(): 1 for 1.0, as bounds are declared.
std::string with_article(const std::string& noun);
std::string bound_text(double value);

/// Every kind of component there is; made when its first class registers.
std::map<std::string, Components>& component_kinds();
Components& components_of(const std::string& kind);

/// The content of a field of type Node: a component, several, or changes to options that are
/// complete elsewhere. Made by component<Base>() and the like (registry.h) and changes<Options>().
struct Part {
  enum class Form {
    one,       // its _target_ names it
    optional,  // as one, or null
    list,      // null: none
    map,       // named by the user; null: none, a null entry is off
    changes    // some keys of Options; a null leaves the key as it is
  };
  Form form;
  const Components* components;
  OptionsType options;
};

/// One option as declared.
struct OptionInfo {
  enum class Type { boolean, integer, number, text, options, part, any, unused };
  std::string name, doc;
  Type type = Type::any;
  int lists = 0;  // 2: a list of lists
  bool nullable = false, required = false;
  Node value;  // the default; null where there is none
  std::optional<double> low, high;
  std::vector<std::string> choices;
  std::string keyword;    // a word that may stand for the number
  OptionsType options{};  // Type::options has them
  Part part{};            // Type::part has one

  /// The options of what may be there: of the section (name ""), of each component by name.
  std::map<std::string, OptionsType> below() const;
  std::string type_text() const;   // "list of integers", "component: loss"
  std::string range_text() const;  // "1 .. 64", "same | valid", ""
};

/// A table of the options of `name`: "" (the program: `root`), a dotted place in it ("trainer",
/// "task.loss", "optimizer.lr"), a component by its own or its Python name, or a kind of component
/// ("loss": lists them). Throws: ConfigError with the nearest name.
std::string describe_text(const OptionsType& root, const std::string& name);

}  // namespace cytra::config
