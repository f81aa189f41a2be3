#pragma once
// TotalSegmentator's models, which are folders of nnU-Net: what it does to images beyond nnU-Net.
// Source: TotalSegmentator 2.18, map_tasks_config.py, python_api.py, nnunet.py.
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace cytra::inference {

struct TotalSegmentatorModel {
  std::array<double, 3> spacing_mm{};  // x, y, z, to which images are resampled; 0: they are not
  double tile_step = 0.5;              // nnU-Net's tile_step_size
  std::vector<std::string> parts;      // the folders of its task, in order; empty: it is alone
  /// There, images are cropped to what another model finds, and labels changed afterwards.
  bool is_cropped = false, is_changed = false;
};

/// The model whose folder has this name, DatasetNNN_NAME; none: it is not TotalSegmentator's.
std::optional<TotalSegmentatorModel> totalsegmentator_model(const std::string& folder);

}  // namespace cytra::inference
