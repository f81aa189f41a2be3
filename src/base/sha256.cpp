#include "base/sha256.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra {
namespace {

/// The fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotated(uint32_t value, int bits) {
  return value >> bits | value << (32 - bits);
}

using State = std::array<uint32_t, 8>;

void add_block(State& state, const unsigned char* block) {
  std::array<uint32_t, 64> words{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t byte = 0; byte < 4; ++byte) words[i] = words[i] << 8 | block[4 * i + byte];
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + words[i - 7] +
               (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const uint32_t one = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) +
                         ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
    const uint32_t two =
        (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  const State added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

constexpr std::size_t kBlock = 64;

/// Adds the whole blocks of `bytes`; returns what is left.
std::string_view add_blocks(State& state, std::string_view bytes) {
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock))
    add_block(state, reinterpret_cast<const unsigned char*>(bytes.data()));
  return bytes;
}

constexpr State kBegin{
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/// The checksum once the last bytes, fewer than a block of `count`, are added.
std::string finished(State state, std::string_view last, uint64_t count) {
  std::string end(last);  // with a 1, zeros and the number of bits
  end += '\x80';
  end.append((120 - end.size() % kBlock) % kBlock, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) end += static_cast<char>(count * 8 >> shift & 0xff);
  add_blocks(state, end);
  return fmt::format("{:08x}", fmt::join(state, ""));
}

}  // namespace

std::string sha256(std::string_view bytes) {
  State state = kBegin;
  const std::string_view last = add_blocks(state, bytes);
  return finished(state, last, bytes.size());
}

std::string sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  State state = kBegin;
  std::string part(std::size_t{1} << 20, '\0');
  for (uint64_t count = 0;;) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    const auto read = static_cast<std::size_t>(file.gcount());
    count += read;
    const std::string_view last = add_blocks(state, std::string_view(part).substr(0, read));
    if (read == part.size()) continue;
    if (!file.eof()) throw_errno("read", path, errno);
    return finished(state, last, count);
  }
}

}  // namespace cytra
