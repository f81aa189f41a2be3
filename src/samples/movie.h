#pragma once
// A generated video of moving cells, with known places.
#include <cstdint>
#include <vector>

#include "io/video_stream.h"

namespace cytra::samples {

struct MovieOptions {
  int64_t width = 1920, height = 1080, frames = 300;
  int64_t frame_rate = 30;  // per second
  double radius = 18;       // pixels, mean
  double speed = 60;        // pixels per second, mean
  double noise = 3;         // deviation, of 255 grey levels
  uint64_t seed = 0;
};

/// Bright discs on a dark, uneven ground, reflected at the border. They move for two seconds and
/// rest for one, again and again. A function of the options alone.
class Movie final : public io::VideoSource {
 public:
  /// Throws: ConfigError for options out of range.
  explicit Movie(const MovieOptions& options);
  bool read(io::VideoFrame& frame) override;
  std::string problem() const override { return ""; }
  /// Where the cells of a frame are: (height, width), 1 for a cell.
  std::vector<unsigned char> mask(int64_t frame) const;

 private:
  struct Cell {
    double x, y, vx, vy, radius, brightness;
  };
  struct Disc {
    double x, y, radius, brightness;
  };
  std::vector<Disc> discs(int64_t frame) const;
  const MovieOptions options_;
  std::vector<Cell> cells_;
  std::vector<float> ground_;       // (height, width) grey levels
  std::vector<signed char> noise_;  // a stock that each frame begins elsewhere in
  int64_t next_ = 0;
};

}  // namespace cytra::samples
