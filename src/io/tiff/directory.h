#pragma once
// The bytes of a TIFF's directory, little-endian; for write.cpp.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cytra::io {

class TiffDirectory {
 public:
  explicit TiffDirectory(bool is_big) : is_big_(is_big) {}
  void set_short(uint16_t tag, uint16_t value);
  void set_long(uint16_t tag, uint32_t value);
  void set_offsets(uint16_t tag, const std::vector<uint64_t>& values);  // of the file's width
  void set_text(uint16_t tag, const std::string& text);
  void set_rational(uint16_t tag, double value);  // above 0
  /// The bytes of the directory for the place `offset`, with the values that its entries point to;
  /// `next` is the offset of the next one, or 0.
  std::string bytes(uint64_t offset, uint64_t next) const;

 private:
  struct Entry {
    uint16_t type;
    uint64_t count;
    std::string data;
  };
  bool is_big_;
  std::map<uint16_t, Entry> entries_;  // a directory is in order of tags
};

}  // namespace cytra::io
