#pragma once
// The most heap a piece of code takes, libraries included, in a program that has heap.h somewhere.
#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
// Of sanitizer/allocator_interface.h, which not every compiler brings.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*,
                                                       std::size_t),  // NOLINT
                                              void (*)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void*);  // NOLINT
}
#else
#include <malloc.h>
#endif

namespace cytra::heap {

inline std::atomic<int64_t> now{0}, most{0};
inline void count(int64_t bytes) {
  const int64_t total = now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (total > most.load(std::memory_order_relaxed)) most.store(total, std::memory_order_relaxed);
}

#if defined(__SANITIZE_ADDRESS__)
inline const bool is_counted =
    __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, std::size_t bytes) { count(static_cast<int64_t>(bytes)); },
        [](const volatile void* block) {
          const void* plain = const_cast<const void*>(block);
          if (plain != nullptr) count(-static_cast<int64_t>(__sanitizer_get_allocated_size(plain)));
        }) != 0;
#elif defined(__SANITIZE_THREAD__)
inline const bool is_counted = false;
#else
inline const bool is_counted = true;
inline void* counted(void* block) {
  if (block != nullptr) count(static_cast<int64_t>(::malloc_usable_size(block)));
  return block;
}
#endif

/// Bytes on top of what was taken when it was made.
class Peak {
 public:
  Peak() : before_(now) { most = before_; }
  int64_t bytes() const { return most - before_; }

 private:
  int64_t before_;
};

}  // namespace cytra::heap
