#pragma once
// Models that find objects: a box, a score and a class of each.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "inference/engines/engine.h"
#include "ops/boxes/boxes.h"

namespace cytra::inference {
struct LoadedModel;
}

namespace cytra::pipelines {

struct DetectorOptions {
  double conf_threshold = 0.25;  // detections with a lower score are left out
  double iou_threshold = 0.5;    // of two boxes of a class that overlap more, the better one stays
  int64_t max_detections = 10000;  // per image, the best; of one in windows, per window
  int64_t batch_size = 8;          // images, or windows, in one pass, at most
  /// The size in pixels of the windows in which larger images are searched (height and width, or
  /// one number for both; <= 0: the image's). Each shares `overlap` of its sides with the next, so
  /// that objects smaller than this are complete in one of them.
  std::vector<int64_t> roi_size{0};
  std::vector<double> overlap{0.25};
  /// What runs the network of a checkpoint, and in which precision; boxes are made of its outputs
  /// in float32. TorchScript is run as it is.
  inference::EngineOptions engine{"eager"};
};

class Detector {
 public:
  virtual ~Detector() = default;
  /// `images`: (C,[D,]H,W) uint8 or float32 as they are on file, of any sizes, on the CPU or the
  /// detector's device; C: in_channels(). What the training did with intensities is done here; a
  /// TorchScript file gets uint8 divided by 255, and float32 as it is.
  /// Returns the objects of each image, in its pixels and within it, by descending score (0 to 1),
  /// on the CPU; classes are from 0 for a checkpoint of ours, a TorchScript file's own numbers. An
  /// image's result does not depend on the others. Thread: one at a time.
  /// Throws: DataError for images that the model does not take, MemoryError.
  virtual std::vector<ops::Boxes> detect(const std::vector<at::Tensor>& images) = 0;
  /// Images and windows so far that had max_detections objects, or as many as a TorchScript file
  /// allows itself, and may have had more.
  virtual int64_t full_windows() const = 0;
  virtual int64_t in_channels() const = 0;
  /// The fingerprint of weights, model and options: it differs where results differ.
  virtual std::string fingerprint() const = 0;
};

/// `path`: a checkpoint of `train experiment=detection/...`, or TorchScript whose forward() takes
/// images (N,C,H,W), or a list of (C,H,W) as torchvision's detectors do, and gives torchvision's
/// list of dicts (boxes (K,4) as x0 y0 x1 y1, scores (K), labels (K)), or a tuple of these three,
/// of one image.
/// Throws: ConfigError for another task's checkpoint, DataError for a file that holds no detector.
std::unique_ptr<Detector> load_detector(const std::string& path,
                                        c10::Device device,
                                        const DetectorOptions& options = {});
/// Makes the detector of a checkpoint that is loaded already. Throws: ConfigError for another
/// task's.
std::unique_ptr<Detector> make_detector(const inference::LoadedModel& model,
                                        c10::Device device,
                                        const DetectorOptions& options);

}  // namespace cytra::pipelines
