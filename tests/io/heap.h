#pragma once
// Replaces malloc, so that heap_peak.h counts: for one source file of a program.
#include <cerrno>

#include "tests/io/heap_peak.h"

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
