#include "pipelines/video/video.h"

#include "pipelines/video/run.h"

namespace cytra::pipelines {

VideoFigures run_video(io::VideoSource& source,
                       io::VideoSink& sink,
                       const inference::Predictor& predictor,
                       const VideoOptions& options,
                       StageReport& report,
                       const VideoHooks& hooks) {
  return VideoRun(source, sink, predictor, options, report, hooks).run();
}

}  // namespace cytra::pipelines
