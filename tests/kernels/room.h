#pragma once
#include <cstdint>
#include <cstring>
#include <memory>

namespace cytra::test {

/// `count` values on the heap, so that AddressSanitizer sees what is read or written beside them.
template <class T>
std::unique_ptr<T[]> room_for(int64_t count) {
  std::unique_ptr<T[]> room(new T[static_cast<std::size_t>(count)]);
  std::memset(static_cast<void*>(room.get()), 0xEE, static_cast<std::size_t>(count) * sizeof(T));
  return room;
}

}  // namespace cytra::test
