#pragma once
// The most heap a piece of code takes, libraries included. Replaces malloc: for one source file of
// a program.
#include <atomic>
#include <cerrno>
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Source: glibc's manual, "Replacing malloc".
extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT
void __libc_free(void*);                          // NOLINT

void* malloc(std::size_t bytes) {
  return cytra::heap::counted(__libc_malloc(bytes));
}
void* calloc(std::size_t count, std::size_t bytes) {
  return cytra::heap::counted(__libc_calloc(count, bytes));
}
void* realloc(void* block, std::size_t bytes) {
  const auto before = static_cast<int64_t>(::malloc_usable_size(block));
  void* moved = __libc_realloc(block, bytes);
  if (moved != nullptr || bytes == 0) cytra::heap::count(-before);
  return cytra::heap::counted(moved);
}
void* memalign(std::size_t side, std::size_t bytes) {
  return cytra::heap::counted(__libc_memalign(side, bytes));
}
void* aligned_alloc(std::size_t side, std::size_t bytes) {
  return cytra::heap::counted(__libc_memalign(side, bytes));
}
int posix_memalign(void** into, std::size_t side, std::size_t bytes) {
  *into = cytra::heap::counted(__libc_memalign(side, bytes));
  return *into == nullptr ? ENOMEM : 0;
}
void free(void* block) {
  if (block != nullptr) cytra::heap::count(-static_cast<int64_t>(::malloc_usable_size(block)));
  __libc_free(block);
}
}
#endif
