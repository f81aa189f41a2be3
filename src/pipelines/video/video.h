#pragma once
// A trained model over the frames of a video, a thread for each stage: decode, preprocess, infer,
// postprocess, encode. It is the core of `process_video`.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "config/options.h"

namespace cytra::io {
class VideoSource;
class VideoSink;
}  // namespace cytra::io
namespace cytra::inference {
class Predictor;
}

namespace cytra::pipelines {

class StageReport;

struct VideoOptions {
  std::string output_kind = "overlay", live = "auto";
  int64_t batch_size = 1, max_gap = 10, measure_drift = 0;
  double skip_threshold = 0;
  std::optional<std::string> roi, cache_dir;
  int64_t roi_margin = 32, roi_every = 1;
  double conf_threshold = 0.25;
  double cache_dir_gb = 10;
  int64_t queue_frames = 16, queue_mb = 256;
  std::optional<int64_t> limit_frames;
  std::string settings;  // C++ only: what labels depend on and the predictor does not tell; for the
                         // cache
  void visit(auto& v) {
    v("output_kind",
      output_kind,
      "overlay: the frame with outlines and a tint; mask: grey, black for the background",
      {"overlay", "mask"});
    v("batch_size",
      batch_size,
      "frames that share their windows' batches; 1 of live video",
      1,
      4096);
    v("skip_threshold",
      skip_threshold,
      "a frame that differs less from the last predicted one (mean of a 1/8 luma thumbnail, 0 to "
      "1) takes over its mask; 0: every frame is predicted",
      0,
      1);
    v("max_gap", max_gap, "at most as many frames in a row take over a mask", 1, 1e6);
    v("measure_drift",
      measure_drift,
      "every n-th frame that takes over a mask is also predicted, to report 1 - IoU; 0: none",
      0,
      1e6);
    v("roi",
      roi,
      "what is predicted: x,y,width,height in pixels of the upright picture; motion: what has "
      "changed; a detector (a checkpoint or TorchScript): what it finds; an image whose pixels "
      "other than 0 are wanted; null: all");
    v("roi_margin", roi_margin, "pixels around what has changed or was found", 0, 1e5);
    v("roi_every",
      roi_every,
      "frames from one that the detector sees to the next; those between keep its regions",
      1,
      1e6);
    v("conf_threshold",
      conf_threshold,
      "boxes that the detector gives a lower score are left out",
      0,
      1);
    v("live",
      live,
      "the oldest frames are dropped where they come too fast: on, off; auto: of a FIFO, a device "
      "or an address",
      {"auto", "on", "off"});
    v("limit_frames", limit_frames, "only this many frames from the start; null: all", 1, 1e9);
    v("cache_dir", cache_dir, "folder that keeps labels, by the frames' pixels and the model");
    v("cache_dir_gb",
      cache_dir_gb,
      "GB that this folder may take; the least recently used are dropped first",
      0,
      1e6);
    v("queue_frames",
      queue_frames,
      "frames that may wait between two stages; live video has queues of its own",
      1,
      1e6);
    v("queue_mb", queue_mb, "MiB that they may take; a larger frame passes alone", 1, 1e6);
  }
};

struct VideoFigures {
  int64_t frames_in = 0;  // decoded
  int64_t inferred = 0, reused = 0, dropped = 0, written = 0;
  int64_t cached = 0;        // labels were in the cache
  int64_t partial = 0;       // of the inferred: a part of the frame, by roi=motion
  int64_t empty = 0;         // the detector of `roi` found nothing: all is background
  int64_t regions = 0;       // predicted, where a detector finds them
  double regions_share = 0;  // mean share of the frame's area that they have
  int64_t longest_gap = 0;   // frames in a row that took over a mask
  int64_t drift_frames = 0;
  double drift_mean = 0, drift_max = 0;  // 1 - IoU of the foreground
  double last_s = 0;                     // time stamp of the last written frame
};

struct VideoHooks {
  /// Asked often; when it returns true, the frames that are predicted are written, and the rest is
  /// left out.
  std::function<bool()> stop = {};
  /// Frames written by now; in the thread that encodes.
  std::function<void(int64_t frames)> progress = {};
};

/// Predicts all frames of `source` and writes them, in their order and with their time stamps,
/// into `sink`, which it finishes, too. Only frames of a live source are ever dropped. `report`
/// gets the five stages, and a detector's work within `preprocess`.
/// Throws: ConfigError (a model that makes no masks, a region beyond the frame), DataError (values
/// that are not finite, a file that holds no detector), IoError, MemoryError.
VideoFigures run_video(io::VideoSource& source,
                       io::VideoSink& sink,
                       const inference::Predictor& predictor,
                       const VideoOptions& options,
                       StageReport& report,
                       const VideoHooks& hooks = {});

}  // namespace cytra::pipelines
