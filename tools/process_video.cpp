// process_video: a trained model over the frames of a video. See `process_video --help`.
#include "cli/arguments.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  using Takes = cytra::cli::Flag::Takes;
  const cytra::cli::Program program{
      "process_video",
      "predict the frames of a video and write a video",
      "  process_video cells.mp4 out.mp4 checkpoint.ckpt_path=logs/.../best.ckpt\n"
      "  process_video cells.mp4 out.mp4 --ckpt logs/.../best.ckpt --output-kind mask "
      "--skip-threshold 0.01 --measure-drift 5\n"
      "  process_video cells.mp4 out.mp4 --ckpt logs/.../best.ckpt --roi motion "
      "video.limit_frames=5\n"
      "  process_video --benchmark --ckpt logs/.../best.ckpt video.limit_frames=1",
      "process_video",
      "cytra_process_video",
      {{"--ckpt", "checkpoint.ckpt_path", Takes::one, "the trained model"},
       {"-o", "video.output", Takes::one, "the video to write, in place of OUT"},
       {"--output-kind", "video.output_kind", Takes::one, "overlay or mask"},
       {"--roi", "video.roi", Takes::one, "x,y,width,height, motion, a detector, or an image"},
       {"--skip-threshold",
        "video.skip_threshold",
        Takes::one,
        "below this change, a frame keeps the last mask"},
       {"--max-gap", "video.max_gap", Takes::one, "at most so many frames in a row keep a mask"},
       {"--measure-drift",
        "video.measure_drift",
        Takes::one,
        "also predict every n-th of these frames"},
       {"--cache-dir", "video.cache_dir", Takes::one, "keep labels for the next run"},
       {"--prometheus", "video.prometheus", Takes::one, "a file of figures for Prometheus"}},
      {{"--benchmark",
        "cytra_benchmark_video",
        "frames per second at 1080p, 4K, 6K and 8K, on generated frames"}}};
  cytra::cli::Words words(program, {"video.input", "video.output"}, argc, argv);
  return cytra::cli::run(program, words.count(), words.data());
}
