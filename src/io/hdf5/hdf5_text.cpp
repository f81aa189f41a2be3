#include "io/hdf5/hdf5_text.h"

#include <algorithm>
#include <vector>

namespace cytra::io {
namespace {

constexpr std::size_t kLargestBlock = std::size_t{1} << 20, kMostBlocks = 64,
                      kLongestText = std::size_t{1} << 16;
constexpr unsigned kContinuation = 0x10, kAttribute = 0x0c;
constexpr unsigned kIsShared = 2;         // of a message's flags
constexpr unsigned char kVariable = 0x9;  // class of a type

/// Bytes of the file; missing ones are 0, and then is_cut() is true.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const InputFile& file, uint64_t at, std::size_t size) : bytes_(size, '\0') {
    const int64_t got = file.read_at(at, bytes_.data(), size);
    bytes_.resize(static_cast<std::size_t>(std::max<int64_t>(got, 0)));
    is_cut_ = bytes_.size() < size;
  }
  std::size_t size() const { return bytes_.size(); }
  bool is_cut() const { return is_cut_; }
  uint64_t number(std::size_t at, std::size_t size) {
    if (size > 8 || at > bytes_.size() || size > bytes_.size() - at) {
      is_cut_ = true;
      return 0;
    }
    uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    return value;
  }
  std::string text(std::size_t at, std::size_t size) {
    if (at > bytes_.size() || size > bytes_.size() - at) {
      is_cut_ = true;
      return "";
    }
    return bytes_.substr(at, size);
  }

 private:
  std::string bytes_;
  bool is_cut_ = false;
};

class TextReader {
 public:
  TextReader(const InputFile& file, uint64_t base, const std::string& name)
      : file_(file), base_(base), name_(name) {
    Bytes super(file, base, 16);
    const std::size_t at = super.number(8, 1) < 2 ? 13 : 9;
    offset_size_ = super.number(at, 1);
    length_size_ = super.number(at + 1, 1);
    is_known_ = !super.is_cut() && offset_size_ <= 8 && length_size_ <= 8;
  }

  std::optional<std::string> read(uint64_t header) {
    if (!is_known_) return std::nullopt;
    Bytes start(file_, base_ + header, 16 + 24);
    if (start.text(0, 4) == "OHDR") {
      const uint64_t flags = start.number(5, 1);
      is_ordered_ = (flags & 4) != 0;
      is_second_ = true;
      const std::size_t at = 6 + ((flags & 0x20) != 0 ? 16U : 0U) + ((flags & 0x10) != 0 ? 4U : 0U),
                        wide = std::size_t{1} << (flags & 3);
      blocks_.push_back({header + at + wide, start.number(at, wide)});
    } else {
      blocks_.push_back({header + 16, start.number(8, 4)});
    }
    for (std::size_t i = 0; i < blocks_.size() && i < kMostBlocks; ++i) {
      if (blocks_[i].bytes > kLargestBlock) return std::nullopt;
      Bytes block(file_, base_ + blocks_[i].at, static_cast<std::size_t>(blocks_[i].bytes));
      const auto found = search(block, is_second_ && i > 0);
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  struct HeaderBlock {
    uint64_t at, bytes;
  };

  /// Goes through the messages of one block; notes where they continue.
  std::optional<std::string> search(Bytes& block, bool is_continuation) {
    std::size_t at = is_continuation ? 4 : 0;  // "OCHK"
    const std::size_t head = !is_second_   ? 8
                             : is_ordered_ ? 6
                                           : 4,
                      end = block.size() -
                            std::min<std::size_t>(is_continuation ? 4 : 0, block.size());
    while (at + head <= end) {
      const uint64_t type = block.number(at, is_second_ ? 1 : 2),
                     size = block.number(at + (is_second_ ? 1 : 2), 2),
                     flags = block.number(at + (is_second_ ? 3 : 4), 1);
      at += head;
      if (size > end - at) return std::nullopt;
      if (type == kContinuation) {
        blocks_.push_back(
            {block.number(at, offset_size_), block.number(at + offset_size_, length_size_)});
      } else if (type == kAttribute && (flags & kIsShared) == 0) {
        const auto text = attribute(block, at, at + size);
        if (text) return text;
      }
      at += size;
    }
    return std::nullopt;
  }

  std::optional<std::string> attribute(Bytes& block, std::size_t at, std::size_t end) {
    const uint64_t version = block.number(at, 1), flags = block.number(at + 1, 1),
                   name_size = block.number(at + 2, 2), type_size = block.number(at + 4, 2),
                   space_size = block.number(at + 6, 2);
    if (version < 1 || version > 3 || (version > 1 && (flags & 3) != 0)) return std::nullopt;
    const auto padded = [&](uint64_t size) { return version == 1 ? (size + 7) / 8 * 8 : size; };
    const std::size_t name_at = at + (version == 3 ? 9 : 8), type_at = name_at + padded(name_size),
                      data_at = type_at + padded(type_size) + padded(space_size);
    if (data_at + 4 + offset_size_ + 4 > end) return std::nullopt;
    std::string name = block.text(name_at, name_size);
    name.resize(std::min(name.size(), name.find('\0')));
    if (name != name_ || (block.number(type_at, 1) & 0xf) != kVariable) return std::nullopt;
    return heap_object(block.number(data_at + 4, offset_size_),
                       block.number(data_at + 4 + offset_size_, 4),
                       block.number(data_at, 4));
  }

  std::optional<std::string> heap_object(uint64_t collection, uint64_t index, uint64_t length) {
    Bytes head(file_, base_ + collection, 8 + length_size_);
    const uint64_t bytes = head.number(8, length_size_);
    if (head.text(0, 4) != "GCOL" || bytes > file_.bytes()) return std::nullopt;
    // Each object takes at least 16 bytes, up to the one that is free space.
    for (uint64_t at = 8 + length_size_; at < bytes;) {
      Bytes object(file_, base_ + collection + at, 8 + length_size_);
      const uint64_t number = object.number(0, 2), size = object.number(8, length_size_);
      at += 8 + length_size_;
      if (object.is_cut() || number == 0 || size > bytes - std::min(at, bytes)) break;
      if (number == index) {
        const std::size_t wanted = static_cast<std::size_t>(std::min({size, length, kLongestText}));
        Bytes text(file_, base_ + collection + at, wanted);
        if (text.is_cut()) break;
        std::string found = text.text(0, wanted);
        found.resize(std::min(found.size(), found.find('\0')));
        return found;
      }
      at += (size + 7) / 8 * 8;
    }
    return std::nullopt;
  }

  const InputFile& file_;
  uint64_t base_;
  const std::string& name_;
  std::size_t offset_size_ = 0, length_size_ = 0;
  bool is_known_ = false, is_second_ = false, is_ordered_ = false;
  std::vector<HeaderBlock> blocks_;
};

}  // namespace

std::optional<std::string> hdf5_text(const InputFile& file,
                                     uint64_t base,
                                     uint64_t header,
                                     const std::string& name) {
  return TextReader(file, base, name).read(header);
}

}  // namespace cytra::io
