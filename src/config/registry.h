#pragma once
// Components by name: `_target_: DynUNet` in a config makes the class that registered itself as
// "DynUNet".
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/options.h"

namespace cytra {

/// The registered name a `_target_` means: `torch.optim.AdamW`, `monai.networks.nets.DynUNet` and
/// the like stand for their last part. Throws: ConfigError with the nearest of `names`.
std::string registered_name(const config::Node& node,
                            const std::vector<std::string>& names,
                            const char* what);

template <class Base>
class Registry {
 public:
  using Make = std::function<std::shared_ptr<Base>(const config::Node&)>;

  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  /// Throws std::logic_error when the name is taken.
  void add(const std::string& name, Make make, const char* file) {
    auto [place, added] = makers_.emplace(name, Entry{std::move(make), file});
    if (!added)
      throw std::logic_error(name + " is registered in " + place->second.file + " and in " + file);
  }
  /// Makes what node["_target_"] names; `what` ("model") is used in messages. Throws: ConfigError.
  std::shared_ptr<Base> make(const config::Node& node, const char* what) const {
    return makers_.at(registered_name(node, names(), what)).make(node);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : makers_) result.push_back(name);
    return result;
  }

 private:
  struct Entry {
    Make make;
    std::string file;
  };
  std::map<std::string, Entry> makers_;
};

template <class Base, class T>
struct Registered {
  Registered(const char* name, const char* file) {
    Registry<Base>::instance().add(
        name,
        [](const config::Node& node) -> std::shared_ptr<Base> {
          return std::make_shared<T>(config::parse<typename T::Options>(node));
        },
        file);
  }
};

}  // namespace cytra

#define CYTRA_REGISTER(Base, T, name)                        \
  static const ::cytra::Registered<Base, T> registered_##T { \
    name, __FILE__                                           \
  }
