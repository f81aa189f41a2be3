#pragma once
#include <memory>
#include <string>

#include "config/registry.h"
#include "data/sample/sample.h"

namespace cytra {

inline std::shared_ptr<data::Transform> make_transform(const std::string& yaml) {
  return make<data::Transform>(yaml);
}

}  // namespace cytra
