// TIFF 6.0, section 2; BigTIFF: https://libtiff.gitlab.io/libtiff/specification/bigtiff.html
#include "io/tiff/directory.h"

#include <algorithm>
#include <cmath>

namespace cytra::io {
namespace {

constexpr uint16_t kAscii = 2, kShort = 3, kLong = 4, kRational = 5, kLong8 = 16;

void put_little_endian(std::string& bytes, uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

void TiffDirectory::set_short(uint16_t tag, uint16_t value) {
  Entry& entry = entries_[tag] = {kShort, 1, {}};
  put_little_endian(entry.data, value, 2);
}

void TiffDirectory::set_long(uint16_t tag, uint32_t value) {
  Entry& entry = entries_[tag] = {kLong, 1, {}};
  put_little_endian(entry.data, value, 4);
}

void TiffDirectory::set_offsets(uint16_t tag, const std::vector<uint64_t>& values) {
  Entry& entry = entries_[tag] = {is_big_ ? kLong8 : kLong, values.size(), {}};
  for (const uint64_t value : values) put_little_endian(entry.data, value, is_big_ ? 8 : 4);
}

void TiffDirectory::set_text(uint16_t tag, const std::string& text) {
  entries_[tag] = {kAscii, text.size() + 1, text + '\0'};
}

void TiffDirectory::set_rational(uint16_t tag, double value) {
  // Uses as many digits as fit.
  const double denominator = std::clamp(std::floor(4e9 / value), 1.0, 1e6);
  const double numerator = std::clamp(std::round(value * denominator), 1.0, 4294967295.0);
  Entry& entry = entries_[tag] = {kRational, 1, {}};
  put_little_endian(entry.data, static_cast<uint64_t>(numerator), 4);
  put_little_endian(entry.data, static_cast<uint64_t>(denominator), 4);
}

std::string TiffDirectory::bytes(uint64_t offset, uint64_t next) const {
  const std::size_t word = is_big_ ? 8 : 4;
  std::string table, values;
  put_little_endian(table, entries_.size(), is_big_ ? 8 : 2);
  const uint64_t values_at = offset + (is_big_ ? 8 : 2) + entries_.size() * (4 + 2 * word) + word;
  for (const auto& [tag, entry] : entries_) {
    put_little_endian(table, tag, 2);
    put_little_endian(table, entry.type, 2);
    put_little_endian(table, entry.count, word);
    if (entry.data.size() <= word) {
      table += entry.data;
      table.append(word - entry.data.size(), '\0');
    } else {
      put_little_endian(table, values_at + values.size(), word);
      values += entry.data;
      values.append(values.size() % 2, '\0');
    }
  }
  put_little_endian(table, next, word);
  return table + values;
}

}  // namespace cytra::io
