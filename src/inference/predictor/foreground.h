#pragma once
// predict.skip_empty: windows that hold no foreground are not predicted.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "inference/predictor/input.h"
#include "inference/predictor/predictor_options.h"
#include "inference/windows/slabs.h"
#include "inference/windows/sliding_window.h"

namespace cytra::inference {

/// Reads 100, ">100", "<220", "otsu", "<otsu", or the path of a mask; none for null. Throws:
/// ConfigError.
std::optional<ForegroundRule> foreground_rule(const config::Node& text);

/// The windows of one image: the image gets one more channel, which is 1 where any channel of the
/// file's values is foreground, and a pass takes it off again.
class Foreground {
 public:
  /// `input` must outlive it. Otsu's threshold is that of 16 runs of rows of a large image. A mask
  /// may have other sizes of the same proportions. Throws: DataError for a mask that does not fit,
  /// and where transforms move voxels; ConfigError where a folder has no mask for the image.
  Foreground(const ForegroundRule& rule, const ModelInput& input);
  /// The image with its further channel.
  RowSource mark(const RowSource& image) const;
  /// A pass over windows of mark(): `forward` gets those that hold foreground; of the others the
  /// first output is `background` (one value for each channel), and more outputs are 0. The first
  /// windows are always predicted, to know the outputs' sizes.
  Forward only(Forward forward, std::vector<double> background);
  /// Logs "ID: 12 of 81 windows hold no value above 37.2 and were left out" (or "nothing of the
  /// mask FILE"); warns where all are.
  void tell(const std::string& id) const;

 private:
  void read_mask(const std::string& path);
  at::Tensor rows(int64_t first, int64_t count) const;
  at::Tensor rows_of_mask(int64_t first, int64_t count) const;
  const ForegroundRule rule_;
  const ModelInput& input_;
  std::vector<double> thresholds_;  // of the channels
  at::Tensor mask_;                 // (Z,Y,X) float32, 0 or 1
  std::string mask_path_;
  int64_t windows_ = 0, empty_ = 0;
};

}  // namespace cytra::inference
