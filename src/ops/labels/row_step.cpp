#include "ops/labels/row_step.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

namespace cytra::ops {
namespace {

constexpr int64_t kSmall = int64_t{512} << 20;  // bytes

}  // namespace

at::Tensor RowsWithHalo::add(const at::Tensor& rows) {
  if (halo_ == 0) return apply_(rows);
  kept_ = kept_.defined() ? at::cat({kept_, rows}, 1) : rows;
  const int64_t taken = first_ + kept_.size(1), ready = taken == count_ ? taken : taken - halo_;
  // As many new rows as the halo has: then each is seen three times at most.
  if (ready <= given_ || (taken < count_ && ready - given_ < halo_)) return {};
  const at::Tensor made = apply_(kept_).narrow(1, given_ - first_, ready - given_);
  given_ = ready;
  const int64_t next = std::max<int64_t>(ready - halo_, 0);
  kept_ = kept_.narrow(1, next - first_, taken - next).clone();
  first_ = next;
  return made;
}

at::Tensor KeptLabels::add(const at::Tensor& rows) {
  if (!all_.rows.defined()) all_ = KeptRows(image_, at::kInt, folder_);
  all_.rows.narrow(0, taken_, rows.size(1)).copy_(kept(rows[0]));
  all_.let_go();
  taken_ += rows.size(1);
  return {};
}

at::Tensor KeptLabels::rest() {
  constexpr int64_t kVoxels = int64_t{1} << 22;
  if (!all_.rows.defined()) return {};
  if (given_ == 0) change(all_.rows);
  const int64_t voxels = std::max<int64_t>(all_.rows.numel() / image_[0], 1),
                count = std::min(std::max<int64_t>(kVoxels / voxels, 1), taken_ - given_);
  if (count == 0) {
    all_ = {};
    return {};
  }
  at::Tensor rows = all_.rows.narrow(0, given_, count).clone();
  all_.let_go();
  given_ += count;
  finish(rows);
  return rows.unsqueeze(0);
}

int64_t kept_in_memory() {
  return is_memory_spared() ? kSmall / 8 : std::max(kSmall, available_memory().bytes / 8);
}

at::Tensor room_for(const std::vector<int64_t>& shape,
                    at::ScalarType type,
                    const std::string& folder,
                    std::optional<int64_t> in_memory) {
  auto bytes = static_cast<int64_t>(c10::elementSize(type));
  for (const int64_t size : shape) bytes *= size;
  const bool is_small = folder.empty() || bytes <= in_memory.value_or(kSmall);
  if (is_small || (!in_memory && bytes <= kept_in_memory())) return at::empty(shape, type);
  std::string path = folder + "/.rows-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  int code = file < 0 ? errno : 0;
  void* memory = MAP_FAILED;
  const auto size = static_cast<std::size_t>(bytes);
  if (file >= 0) {
    ::unlink(path.c_str());
    code = ::posix_fallocate(file, 0, static_cast<off_t>(size));
    if (code == 0) memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (code == 0 && memory == MAP_FAILED) code = errno;
    ::close(file);
  }
  if (code != 0) {
    throw IoError("{}: no file of {} MB for what does not fit into memory: {}",
                  folder,
                  size / 1'000'000,
                  std::strerror(code));
  }
  return at::from_blob(
      memory, shape, [size](void* own) { ::munmap(own, size); }, at::TensorOptions(type));
}

KeptRows::KeptRows(const std::vector<int64_t>& shape,
                   at::ScalarType type,
                   const std::string& folder,
                   int64_t in_memory)
    : rows(room_for(shape, type, folder, in_memory)),
      is_file_(std::cmp_greater(rows.nbytes(), in_memory) && !folder.empty()) {
  if (!is_file_) rows.zero_();
}

void KeptRows::expect(const at::Tensor& part) const {
  if (!is_file_) return;
  if (part.dim() > 1 && !part.is_contiguous()) {
    for (const at::Tensor& one : part.unbind(0)) expect(one);
    return;
  }
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.const_data_ptr()),
             first = begin / page * page;
  ::madvise(reinterpret_cast<void*>(first), begin + part.nbytes() - first, MADV_WILLNEED);
}

void KeptRows::let_go() const {
  if (is_file_) ::madvise(rows.mutable_data_ptr(), rows.nbytes(), MADV_DONTNEED);
}

}  // namespace cytra::ops
