#pragma once
#include <string>

#include <c10/core/DeviceType.h>

namespace cytra::training {

/// bf16-mixed: autocast as torch.autocast(dtype=bfloat16) for the life of this object.
class Autocast {
 public:
  Autocast(const std::string& precision, c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool on_;
};

}  // namespace cytra::training
