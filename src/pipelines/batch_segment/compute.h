#pragma once
// The work of the device for images: boxes, encodings, masks.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/windows/window_run.h"
#include "nn/square_image.h"
#include "pipelines/batch_segment/batch_segment.h"
#include "pipelines/detection/tiles.h"

namespace cytra::pipelines {

/// An image on its way.
struct SegmentWork {
  SegmentInput input;
  std::string content;
  bool is_over = false;    // it failed, or was there before
  at::Tensor image;        // (C,H,W) uint8 or float32
  nn::SquareImage square;  // its image is undefined where the embedding is known
  ops::Boxes found;
  at::Tensor embedding;           // (1,C,s,s)
  bool is_new_embedding = false;  // it is to be kept
  at::Tensor logits;              // (objects,h,w), on the CPU
  /// A large image in tiles, each with its square and the objects that it holds best; the last one
  /// is the whole image, for objects that no tile holds. Empty: it is not cut.
  std::vector<SegmentWork> parts;
  Tile tile;                     // a part's place
  std::vector<int64_t> objects;  // and its objects' numbers in the whole
  SegmentWork* whole = nullptr;  // and that image, while it is computed

  int64_t bytes() const {
    int64_t sum = 0;
    for (const at::Tensor* one : {&image, &square.image, &embedding, &logits})
      if (one->defined()) sum += static_cast<int64_t>(one->nbytes());
    for (const SegmentWork& part : parts) sum += part.bytes();
    return sum;
  }
};
using SegmentWorks = std::vector<SegmentWork*>;

/// The parts of an image that are encoded: the image itself, or its tiles.
inline SegmentWorks units_of(SegmentWork& work) {
  SegmentWorks units;
  for (SegmentWork& part : work.parts) units.push_back(&part);
  if (units.empty()) units.push_back(&work);
  return units;
}

/// Stages of a report.
struct SegmentStages {
  explicit SegmentStages(StageReport& report, const BatchSegmentOptions& options);
  StageReport::Stage &models, &load, &compute, &detect, &encode, &masks, &save;
};

/// The models of a run. Thread: one.
class SegmentCompute {
 public:
  SegmentCompute(const SegmentModels& models,
                 const BatchSegmentOptions& options,
                 c10::Device device,
                 SegmentStages& stages);
  /// Loads it if need be.
  PromptedSegmenter& segmenter();
  /// Makes boxes and logits of all images. `sink` gets those that fail.
  void run(const SegmentWorks& works, SegmentSink& sink, SegmentCounts& counts);
  /// run() with each box by itself, with the image's encoding.
  void run_naively(SegmentWork& work, SegmentSink& sink, SegmentCounts& counts);
  void forget_models();

 private:
  using Step = std::function<void(const SegmentWorks&)>;
  static void together(const SegmentWorks& works, SegmentSink& sink, const Step& step);
  Detector& detector(const std::string& path);
  void detect(const std::string& path, const SegmentWorks& works, SegmentCounts& counts);
  void encode(const SegmentWorks& works, SegmentCounts& counts);
  void make_masks(const SegmentWorks& works);

  const SegmentModels& models_;
  const BatchSegmentOptions& options_;
  const c10::Device device_;
  SegmentStages& stages_;
  std::map<std::string, std::unique_ptr<Detector>> detectors_;  // by path
  std::unique_ptr<PromptedSegmenter> segmenter_;
  inference::AdaptiveBatch images_, encodings_, boxes_;
};

/// Masks of the whole image's size, in the boxes' order. Throws: DataError for logits that are not
/// finite.
std::vector<SegmentedObject> objects_of(const SegmentWork& work,
                                        const PromptedSegmenter& segmenter);

}  // namespace cytra::pipelines
