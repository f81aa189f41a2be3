#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cytra::report {

/// Allocated memory over time.
struct MemoryCourse {
  struct Phase {
    std::string name;
    double begin_s, end_s;
  };
  std::string device;                              // "CPU", "CUDA"
  std::vector<std::pair<double, int64_t>> points;  // seconds from the beginning, bytes
  std::vector<Phase> phases;
};

/// An SVG file: memory as a line, phases as coloured bands behind it.
std::string memory_svg(const MemoryCourse& course);

}  // namespace cytra::report
