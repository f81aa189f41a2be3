#pragma once
// The five threads of run_video().
#include <condition_variable>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/queue.h"
#include "inference/outputs/result.h"
#include "inference/predictor/windowed_model.h"
#include "io/video_stream.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/video/frame_cache.h"
#include "pipelines/video/frame_selector.h"
#include "pipelines/video/video.h"

namespace cytra::pipelines {

/// The geometry of pixels at multiples of 1 mm: by it transforms track where pixels go.
io::Geometry plain_geometry();

class VideoRun {
 public:
  VideoRun(io::VideoSource& source,
           io::VideoSink& sink,
           const inference::Predictor& predictor,
           const VideoOptions& options,
           StageReport& report,
           const VideoHooks& hooks);
  VideoFigures run();

 private:
  /// A box of a frame that is predicted, or in the cache.
  struct Region {
    FrameBox box;
    std::shared_ptr<const inference::ModelInput> input;  // where it is predicted
    at::Tensor values;                                   // of the model, on the CPU
    std::string key;                                     // of the cache
    at::Tensor labels;                                   // that were in it
  };
  /// A frame that is being processed; the last one has no pixels, but the rest of the sound.
  struct Job {
    io::VideoFrame frame;
    FrameSelector::Choice choice;
    std::vector<Region> regions;
    bool is_end() const { return frame.rgb.empty(); }
    bool needs_model() const;
    int64_t bytes() const;  // of memory
  };
  using JobPointer = std::unique_ptr<Job>;
  using Jobs = Queue<JobPointer>;

  bool is_stopped() const { return hooks_.stop && hooks_.stop(); }
  void decode_all();
  void preprocess_all();
  void infer_all();
  void postprocess_all();
  void encode_all();
  std::shared_ptr<const inference::ModelInput> input_of(const io::VideoFrame& frame,
                                                        const FrameBox& box) const;
  void look_up(Job& job);
  void infer(std::vector<JobPointer>& jobs);
  void predict(const std::vector<Region*>& regions);
  void wait_for_engine(int64_t frames);
  at::Tensor labels_of(const Region& region);
  void paste(const Job& job);
  void count(const Job& job);
  void fail(const std::exception_ptr& error);

  io::VideoSource& source_;
  io::VideoSink& sink_;
  const inference::Predictor& predictor_;
  const inference::ResultOptions result_;
  const VideoOptions options_;
  const VideoHooks hooks_;
  const bool is_live_;
  FrameCache cache_;
  StageReport::Stage &decoding_, &preprocessing_;
  FrameSelector selector_;
  StageReport::Stage &inferring_, &postprocessing_, &encoding_;
  const struct QueueSize {
    std::size_t frames;
    int64_t bytes;
  } queue_;
  Jobs decoded_, prepared_, predicted_, drawn_;
  at::Tensor labels_;    // (H,W) int32 of the frame as stored: what the last one got
  int64_t highest_ = 1;  // label; 0: objects
  // Each figure is written by one thread and read when all have ended.
  VideoFigures figures_;
  int64_t gap_ = 0;
  struct Drift {  // 1 - IoU of the foreground
    int64_t frames = 0;
    double sum = 0, most = 0;
    void add(const at::Tensor& shown, const at::Tensor& exact);
    double mean() const { return frames == 0 ? 0 : sum / static_cast<double>(frames); }
  };
  Drift drift_;
  std::mutex state_mutex_;
  std::condition_variable state_changed_;
  bool has_failed_ = false;
  bool has_engine_ = false;  // the model has run
  int64_t handled_ = 0;      // frames that have passed the model
};

}  // namespace cytra::pipelines
