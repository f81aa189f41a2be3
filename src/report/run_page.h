#pragma once
// What a page shows of a training; it needs no other file and no network.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/curve.h"
#include "report/findings.h"

namespace cytra::report {

/// Orders dice_2 before dice_10.
struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const;
};

/// A training, as it has gone so far.
struct RunPage {
  struct Picture {
    std::string png;
    int64_t step = 0;
  };
  std::string title, config;
  std::vector<std::pair<std::string, std::string>> environment;
  std::map<std::string, Curve, NaturalOrder> curves;
  std::map<std::string, Picture> images;
  std::map<std::string, std::string> texts, captions;
  std::vector<std::string> classes, legend;  // as metrics have them; as they are
  std::vector<std::string> warnings;
  Findings findings;  // the newest validation's
  std::string monitor = "val/loss";
  bool is_higher_better = false;
  double waited = 0, computed = 0;  // seconds, up to a factor
  int64_t epoch = 0, step = 0, first_step = 0;
  double seconds = 0;

  /// The page, of which `results` ("best/...") stand on top.
  std::string html(const std::map<std::string, double>& results) const;

 private:
  std::string tiles(const std::map<std::string, double>& results) const;
  std::string plots() const;
  std::string worst_images() const;
  std::string pictures() const;
  std::string colours() const;
  std::string metrics_table() const;
  std::string times() const;
  std::string run_table() const;
  std::string warning_list() const;
};

}  // namespace cytra::report
