#include "io/row_journal.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "io/compression/zstd.h"
#include "io/fingerprint.h"

namespace cytra::io {
namespace {

constexpr char kJournalMagic[8] = {'C', 'Y', 'T', 'R', 'O', 'W', 'S', '1'};
constexpr std::size_t kDigits = 32;  // of a fingerprint

/// The head before the pixels of a block; its fingerprint covers the other fields and the
/// compressed pixels.
struct BlockHead {
  char fingerprint[kDigits];
  int64_t first, count, bytes;  // compressed
  std::array<int64_t, 4> shape;
  int64_t dtype;
};

std::string fingerprint_of(const BlockHead& head, const unsigned char* pixels) {
  std::string text(reinterpret_cast<const char*>(&head) + kDigits, sizeof head - kDigits);
  return fingerprint(text + fingerprint(pixels, static_cast<std::size_t>(head.bytes)));
}

bool read_all(int descriptor, void* into, std::size_t bytes, int64_t offset) {
  auto* to = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor, to, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void write_all(const std::string& path, int descriptor, const std::string& bytes, int64_t offset) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::pwrite(
        descriptor, bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw_errno("can't be written", path, put < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(put);
  }
}

}  // namespace

RowJournal::RowJournal(std::string path, const std::string& stamp, int64_t first)
    : path_(std::move(path)), first_(first), next_(first) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) throw_errno("can't be written", path_, errno);
  try {
    if (!resume(stamp)) begin(stamp);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RowJournal::~RowJournal() {
  ::close(descriptor_);
}

void RowJournal::begin(const std::string& stamp) {
  blocks_.clear();
  next_ = first_;
  if (::ftruncate(descriptor_, 0) != 0) throw_errno("can't be written", path_, errno);
  std::string head(kJournalMagic, sizeof kJournalMagic);
  head += fingerprint(stamp + "\n" + std::to_string(first_));
  write_all(path_, descriptor_, head, 0);
  end_ = std::ssize(head);
}

bool RowJournal::resume(const std::string& stamp) {
  char head[sizeof kJournalMagic + kDigits];
  if (!read_all(descriptor_, head, sizeof head, 0) ||
      std::memcmp(head, kJournalMagic, sizeof kJournalMagic) != 0 ||
      std::string(head + sizeof kJournalMagic, kDigits) !=
          fingerprint(stamp + "\n" + std::to_string(first_)))
    return false;
  end_ = sizeof head;
  BlockHead block{};
  std::vector<unsigned char> pixels;
  const off_t size = ::lseek(descriptor_, 0, SEEK_END);
  while (read_all(descriptor_, &block, sizeof block, end_)) {
    const int64_t at = end_ + static_cast<int64_t>(sizeof block);
    if (block.first != next_ || block.count < 1 || block.bytes < 0 || block.bytes > size - at)
      break;
    pixels.resize(static_cast<std::size_t>(block.bytes));
    if (!read_all(descriptor_, pixels.data(), pixels.size(), at) ||
        fingerprint_of(block, pixels.data()) != std::string(block.fingerprint, kDigits))
      break;
    blocks_.push_back({end_, block.first, block.count});
    next_ += block.count;
    end_ = at + block.bytes;
  }
  if (::ftruncate(descriptor_, end_) != 0) throw_errno("can't be written", path_, errno);
  return true;
}

void RowJournal::append(const Image& rows, int64_t count) {
  const std::vector<unsigned char> packed = compress_zstd(rows.pixels.data(), rows.pixels.size());
  BlockHead head{};
  head.first = next_;
  head.count = count;
  head.bytes = std::ssize(packed);
  head.shape = rows.shape;
  head.dtype = static_cast<int64_t>(rows.dtype);
  std::memcpy(head.fingerprint, fingerprint_of(head, packed.data()).data(), kDigits);
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(packed.data()), packed.size());
  write_all(path_, descriptor_, bytes, end_);
  blocks_.push_back({end_, next_, count});
  next_ += count;
  end_ += std::ssize(bytes);
}

void RowJournal::replay(const std::function<void(int64_t first, const Image& rows)>& take) const {
  for (const RowBlock& block : blocks_) {
    BlockHead head{};
    if (!read_all(descriptor_, &head, sizeof head, block.offset))
      throw DataError(path_ + ": cut short while it was in use");
    std::vector<unsigned char> packed(static_cast<std::size_t>(head.bytes));
    if (!read_all(descriptor_,
                  packed.data(),
                  packed.size(),
                  block.offset + static_cast<int64_t>(sizeof head)) ||
        fingerprint_of(head, packed.data()) != std::string(head.fingerprint, kDigits))
      throw DataError(path_ + ": changed while it was in use");
    Image rows;
    rows.dtype = static_cast<Dtype>(head.dtype);
    rows.shape = head.shape;
    rows.pixels.resize(rows.bytes());
    decompress_zstd(packed.data(), packed.size(), rows.pixels.data(), rows.pixels.size(), path_);
    take(block.first, rows);
  }
}

}  // namespace cytra::io
