#pragma once
#include <array>
#include <cstdint>

namespace cytra::io {

/// The colour (red, green, blue) of a class or instance other than 0. Source: Okabe and Ito's
/// palette, which people with colour blindness can distinguish.
inline const std::array<unsigned char, 3>& label_colour(int64_t label) {
  static constexpr std::array<unsigned char, 3> kColours[] = {{230, 159, 0},
                                                              {86, 180, 233},
                                                              {0, 158, 115},
                                                              {240, 228, 66},
                                                              {0, 114, 178},
                                                              {213, 94, 0},
                                                              {204, 121, 167}};
  return kColours[((label - 1) % 7 + 7) % 7];
}

}  // namespace cytra::io
