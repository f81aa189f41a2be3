#pragma once
// The five threads of run_video().
#include <atomic>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/queue.h"
#include "inference/predictor.h"
#include "io/video_stream.h"
#include "pipelines/stage_report.h"
#include "pipelines/video.h"
#include "pipelines/video/attention.h"

namespace cytra::pipelines {

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
  /// A frame on its way; the last one has no pixels, but what is left of the sound.
  struct Job {
    io::VideoFrame frame;
    Attention::Choice choice;
    std::unique_ptr<inference::ModelInput> input;  // where it is predicted
    at::Tensor values;                             // of the model, on the CPU
    bool is_end() const { return frame.rgb.empty(); }
  };
  using JobPointer = std::unique_ptr<Job>;
  using Jobs = Queue<JobPointer>;

  bool is_stopped() const { return hooks_.stop && hooks_.stop(); }
  void decode_all();
  void preprocess_all();
  void infer_all();
  void postprocess_all();
  void encode_all();
  std::unique_ptr<inference::ModelInput> input_of(const Job& job) const;
  void infer(std::vector<JobPointer>& jobs);
  at::Tensor labels_of(const Job& job) const;
  void paste(const Job& job);
  void measure(const at::Tensor& labels, const FrameBox& box);
  void fail(const std::exception_ptr& error);
  static int64_t bytes_of(const Job& job);

  io::VideoSource& source_;
  io::VideoSink& sink_;
  const inference::Predictor& predictor_;
  const VideoOptions options_;
  const VideoHooks hooks_;
  const bool is_live_;
  Attention attention_;
  StageReport::Stage &decoding_, &preprocessing_, &inferring_, &postprocessing_, &encoding_;
  Jobs decoded_, prepared_, predicted_, drawn_;
  at::Tensor labels_;    // (H,W) int32 of the frame as stored: what the last one got
  int64_t highest_ = 1;  // label; 0: objects
  // Each is written by one thread and read when all have ended.
  VideoFigures figures_;
  int64_t gap_ = 0;
  double drift_sum_ = 0;
  std::mutex error_mutex_;
  std::exception_ptr error_;  // the first
};

}  // namespace cytra::pipelines
