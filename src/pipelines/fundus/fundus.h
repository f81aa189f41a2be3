#pragma once
// Folders of photographs of the retina, brought to one place, size and contrast. docs/fundus.md
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "data/transforms/fundus/view.h"
#include "pipelines/job/stage_report.h"

namespace cytra::pipelines {

struct FundusOptions : data::fundus::DiscOptions {
  data::fundus::View view;
  bool contrast = true, mask = true;
  int64_t batch_size = 0, workers = 2;
  void visit(auto& v) {
    v("size", view.size, "pixels of a side of the results", 16, 16384);
    v("fill", view.fill, "diameter of the disc as a share of that", 0.1, 2);
    v("contrast", contrast, "write contrast/NAME.png: 4 (x - blur(x)) + 0.5");
    v("mask", mask, "write masks/NAME.png, and 0 outside of the disc everywhere");
    v("batch_size",
      batch_size,
      "images of one size that are computed together, at most; 0: 8 on a GPU, one on a CPU",
      0,
      1024);
    v("workers", workers, "threads that read, and as many that write", 1, 256);
    DiscOptions::visit(v);
  }
};

struct FundusInput {
  std::string path, name;  // name: of the results
};

/// Functions that are called for an image; from any thread, one at a time.
struct FundusEvents {
  /// Called when the image's files are on the disk.
  std::function<void(const FundusInput& input, const data::fundus::Disc& disc)> done;
  /// Called when the image can't be read, or no disc was found (then with the disc's numbers, else
  /// null).
  std::function<void(
      const FundusInput& input, const std::exception& error, const data::fundus::Disc* disc)>
      failed;
};

/// Files of an image, below the folder of the results.
std::vector<std::string> fundus_files(const FundusInput& input, const FundusOptions& options);

/// Reads, finds and writes at the same time, with no more than two batches in memory. Images have
/// one or three channels; results are PNG of 16 bit where the image is, else of 8 bit. Throws: as
/// AtomicFile, MemoryError; what is wrong with an image goes to `failed`.
void preprocess_fundus(const std::vector<FundusInput>& inputs,
                       const FundusOptions& options,
                       const std::string& folder,
                       c10::Device device,
                       StageReport& report,
                       const FundusEvents& events);

}  // namespace cytra::pipelines
