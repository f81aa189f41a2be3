#pragma once
// Many images through two models: a detector finds boxes, a prompted segmenter makes a mask of
// each.
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "data/loader/cache.h"
#include "io/image.h"
#include "io/objects/coco_rle.h"
#include "pipelines/detection/detector.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/segmenter/segmenter.h"

namespace cytra::pipelines {

struct SegmentInput {
  std::string path;
  std::string name;  // of its results: a path without ending below their folder, its own
  std::string view;  // which detector finds its objects; "" where there are no views
};

struct SegmentedObject {
  std::array<float, 4> box{};  // x0 y0 x1 y1, as ops::Boxes
  float score = 0;
  int64_t label = 0;
  io::CocoRle mask;  // all of it, what lies under another object, too
};

struct SegmentedImage {
  SegmentInput input;
  std::string content;  // fingerprint of the file
  int64_t height = 0, width = 0;
  std::vector<SegmentedObject> objects;  // by descending score

  /// (1,1,H,W) uint16: object i of the list is i + 1. Where several overlap, the one with the
  /// highest score is visible. Throws: DataError for more than 65535 objects.
  io::Image labels() const;
};

struct SegmentModels {
  std::function<std::string(const std::string& view)> detector_of;  // path of its detector
  std::function<std::unique_ptr<Detector>(const std::string& path)> load_detector;
  std::function<std::unique_ptr<PromptedSegmenter>()> load_segmenter;
};

/// Boxes in one pass of the mask decoder, by the mean number of objects of an encoded image.
struct BoxBatchSizes {
  int64_t few, some, many;  // to 15 objects, to 30, more
  int64_t of(double objects) const { return objects <= 15 ? few : objects <= 30 ? some : many; }
};

struct BatchSegmentOptions {
  /// naive, for comparison: the models are loaded for each image, and each box is a separate call
  /// of the segmenter, which encodes the image again. optimized: models are loaded once, an image
  /// is encoded once, boxes of several images make one batch. parallel: optimized, while other
  /// threads read and write. Masks are the same except for the rounding of sums.
  std::string mode = "parallel";
  BoxBatchSizes sam_batch_size{32, 32, 32};
  int64_t image_batch_size = 8;  // images in one pass of detector and encoder
  int64_t io_workers = 4;        // threads that read, and as many that write, of mode parallel
  /// The side in pixels of the tiles in which larger images are encoded; neighbouring tiles
  /// overlap by a quarter; 0: as a whole. For the detector, that is DetectorOptions::roi_size.
  int64_t tile = 0;
  std::function<void()> after_batch;          // called by the thread that computes; may be empty
  data::CacheLimits cache{0, "", 50, false};  // of the images' encodings; not of mode naive
};

/// The receiver of segmented images. Thread: several at once.
class SegmentSink {
 public:
  virtual ~SegmentSink() = default;
  /// Whether the image is to be segmented. `content`: fingerprint of the file.
  virtual bool wants(const SegmentInput& input, const std::string& content) = 0;
  virtual void take(const SegmentedImage& image) = 0;
  /// Takes an image that can't be read or segmented. What this throws ends the run.
  virtual void leave_out(const SegmentInput& input, std::exception_ptr error) = 0;
};

struct SegmentCounts {
  int64_t images = 0, boxes = 0;
  int64_t encoded = 0;       // passes of an image through the encoder
  int64_t cached = 0;        // encodings that were there already
  int64_t full_windows = 0;  // Detector::full_windows()
};

/// Keeps the models that it has loaded, for the next run. Thread: one.
class BatchSegmenter {
 public:
  /// Adds its stages to the report, which outlives this.
  BatchSegmenter(SegmentModels models,
                 BatchSegmentOptions options,
                 c10::Device device,
                 StageReport& report);
  ~BatchSegmenter();
  /// Inputs of one view follow each other, else their order is kept. An error of one image leaves
  /// out only that image. Where memory runs out, batches are halved. Throws: what loading a model
  /// throws, IoError, and what the sink throws.
  SegmentCounts run(std::vector<SegmentInput> inputs, SegmentSink& sink);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cytra::pipelines
