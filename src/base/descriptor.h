#pragma once
// An open file's number, which is closed with the object that holds it.
#include <utility>

#include <unistd.h>

namespace cytra {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  /// The number; < 0: there is none.
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace cytra
