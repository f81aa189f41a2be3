#pragma once
#include <string>

namespace cytra::training {

/// A class's name as metrics have it ("dice_" + it): without spaces and slashes, which part names.
inline std::string metric_name(std::string class_name) {
  for (char& letter : class_name)
    if (static_cast<unsigned char>(letter) <= ' ' || letter == '/') letter = '_';
  return class_name;
}

}  // namespace cytra::training
