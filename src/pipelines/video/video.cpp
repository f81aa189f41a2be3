#include "pipelines/video/video.h"

#include <fmt/format.h>

#include "base/error.h"
#include "pipelines/video/run.h"

namespace cytra::pipelines {

void VideoOptions::check() const {
  double last = 0;
  for (const double scale : scales) {
    if (!(scale > last && scale < 1)) {
      throw ConfigError(fmt::format(
          "video.scales: expected shares of the frame's sides, ascending, between 0 and "
          "1; got {}",
          scale));
    }
    last = scale;
  }
  if (min_confidence > 0 && scales.empty())
    throw ConfigError("video.scales: expected at least one, with video.min_confidence above 0");
}

VideoFigures run_video(io::VideoSource& source,
                       io::VideoSink& sink,
                       const inference::Predictor& predictor,
                       const VideoOptions& options,
                       StageReport& report,
                       const VideoHooks& hooks) {
  return VideoRun(source, sink, predictor, options, report, hooks).run();
}

}  // namespace cytra::pipelines
