#pragma once
// The work of the device for images: boxes, encodings, masks.
#include <map>
#include <memory>

#include "inference/windows/window_run.h"
#include "pipelines/batch_segment/work.h"

namespace cytra::pipelines {

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
