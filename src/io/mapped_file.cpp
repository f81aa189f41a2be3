#include "io/mapped_file.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

namespace cytra::io {

/// A range that the handler of SIGBUS can read at any time: ranges are reused, never freed.
struct MappedFile::Range {
  std::atomic<bool> is_used{true}, is_lost{false};
  std::atomic<int> readings{0};
  std::atomic<unsigned char*> begin{nullptr};
  std::atomic<std::size_t> bytes{0}, touched{0};
  Range* next = nullptr;

  static std::atomic<Range*> first;
  static Range* take();
  static void on_fault(int signal, siginfo_t* info, void* context);
  static void watch();
};

std::atomic<MappedFile::Range*> MappedFile::Range::first{nullptr};

namespace {

struct sigaction previous {};

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(signal);
  ::signal(signal, SIG_DFL);  // the access is tried again, and ends the process
}

}  // namespace

MappedFile::Range* MappedFile::Range::take() {
  for (Range* range = first; range != nullptr; range = range->next) {
    bool is_used = false;
    if (range->is_used.compare_exchange_strong(is_used, true)) return range;
  }
  auto* range = new Range;
  range->next = first;
  while (!first.compare_exchange_weak(range->next, range)) {
  }
  return range;
}

void MappedFile::Range::on_fault(int signal, siginfo_t* info, void* context) {
  const auto* at = static_cast<unsigned char*>(info->si_addr);
  for (Range* range = first; range != nullptr; range = range->next) {
    unsigned char* begin = range->begin;
    const std::size_t bytes = range->bytes;
    if (range->readings == 0 || at < begin || at >= begin + bytes) continue;
    const int error_number = errno;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    unsigned char* from = begin + static_cast<std::size_t>(at - begin) / page * page;
    range->is_lost = true;
    const void* zeros = ::mmap(from,
                               bytes - static_cast<std::size_t>(from - begin),
                               PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
                               -1,
                               0);
    errno = error_number;
    if (zeros != MAP_FAILED) return;
  }
  pass_on(signal, info, context);
}

void MappedFile::Range::watch() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &previous);
  });
}

MappedFile::MappedFile(std::string path, int descriptor, std::size_t bytes)
    : path_(std::move(path)), range_(Range::take()) {
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    range_->is_used = false;
    throw_errno("can't be mapped into memory", path_, errno);
  }
  range_->is_lost = false;
  range_->touched = 0;
  range_->bytes = bytes;
  range_->begin = static_cast<unsigned char*>(data);
}

MappedFile::~MappedFile() {
  unsigned char* data = range_->begin;
  range_->begin = nullptr;
  ::munmap(data, range_->bytes);
  range_->is_used = false;
}

const unsigned char* MappedFile::data() const {
  return range_->begin;
}

std::size_t MappedFile::size() const {
  return range_->bytes;
}

MappedFile::Reading::Reading(const MappedFile& file, std::size_t bytes)
    : file_(file), bytes_(bytes) {
  Range::watch();
  ++file_.range_->readings;
}

MappedFile::Reading::~Reading() {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  Range& range = *file_.range_;
  if (range.touched.fetch_add(bytes_) + bytes_ > kMost) {
    range.touched = 0;
    ::madvise(range.begin, range.bytes, MADV_DONTNEED);
  }
  --range.readings;
}

void MappedFile::Reading::check() const {
  if (!file_.range_->is_lost) return;
  throw DataError(file_.path_ +
                  ": became shorter, or its disk failed, while it was read, expected a file at "
                  "rest");
}

}  // namespace cytra::io
