#pragma once
// Components by name: `_target_: DynUNet` in a config makes the class that registered itself as
// "DynUNet". A base class names its kind for messages: `static constexpr const char* kKind =
// "model";`.
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/option_lister.h"
#include "config/options.h"

namespace cytra {

template <class Base>
class Registry {
 public:
  using Make = std::function<std::shared_ptr<Base>(const config::Node&)>;

  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  /// Registers a class. Throws: std::logic_error when the name is taken.
  void add(const std::string& name, Make make, config::OptionsType options, const char* file) {
    auto [place, added] = makers_.emplace(name, Maker{std::move(make), file});
    if (!added)
      throw std::logic_error(name + " is registered in " + place->second.file + " and in " + file);
    components_.types.emplace(name, options);
  }
  /// Makes the component that node["_target_"] names. Throws: ConfigError.
  std::shared_ptr<Base> make(const config::Node& node) const {
    return makers_.at(components_.name_of(node)).make(node);
  }
  /// The registered components without their C++ types: names and options.
  const config::Components& components() const { return components_; }
  std::vector<std::string> names() const { return components_.names(); }

 private:
  struct Maker {
    Make make;
    std::string file;
  };
  std::map<std::string, Maker> makers_;
  config::Components& components_ = config::components_of(Base::kKind);
};

/// The component that node["_target_"] names, made with the node's options. Throws: ConfigError.
template <class Base>
std::shared_ptr<Base> make(const config::Node& node) {
  return Registry<Base>::instance().make(node);
}
/// Makes a component from YAML in C++: make<training::Optimizer>("{_target_: AdamW, lr: 0.01}").
template <class Base>
std::shared_ptr<Base> make(const std::string& yaml) {
  return make<Base>(config::parse_yaml(yaml, "make()"));
}

template <class Base, class T>
struct Registered {
  Registered(const char* file, std::initializer_list<const char*> names) {
    for (const char* name : names)
      Registry<Base>::instance().add(
          name,
          [](const config::Node& node) -> std::shared_ptr<Base> {
            return std::make_shared<T>(config::parse<typename T::Options>(node));
          },
          config::options_type<typename T::Options>(),
          file);
  }
};

namespace config {

/// Says which component a field of type Node holds, for visit(): `v("loss", loss, "minimised",
/// component<Loss>())`.
template <class Base>
Part part(Part::Form form) {
  return {form, &Registry<Base>::instance().components(), {}};
}
template <class Base>
Part component() {
  return part<Base>(Part::Form::one);
}
template <class Base>
Part optional_component() {
  return part<Base>(Part::Form::optional);
}
template <class Base>
Part list_of() {
  return part<Base>(Part::Form::list);
}
template <class Base>
Part map_of() {
  return part<Base>(Part::Form::map);
}

}  // namespace config
}  // namespace cytra

/// Registers a component: CYTRA_REGISTER(Transform, PerKey<Clipd>, "Clipd"); further names are
/// aliases.
#define CYTRA_REGISTER(Base, T, ...) CYTRA_REGISTER_AS(Base, T, __COUNTER__, __VA_ARGS__)
#define CYTRA_REGISTER_AS(Base, T, number, ...) CYTRA_REGISTER_NUMBER(Base, T, number, __VA_ARGS__)
#define CYTRA_REGISTER_NUMBER(Base, T, number, ...)               \
  static const ::cytra::Registered<Base, T> registered_##number { \
    __FILE__, {                                                   \
      __VA_ARGS__                                                 \
    }                                                             \
  }
