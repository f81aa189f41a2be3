// benchmark_performance: latency, throughput and memory of a model under each option. See `--help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  using Takes = cytra::cli::Flag::Takes;
  return cytra::cli::run(
      {"benchmark_performance",
       "measure the time of a model's pass and of its training steps, with each option",
       "  benchmark_performance --config im2im/segmentation --input-shape 1 1 256 256 "
       "--batch-sizes 1 2 4\n"
       "  benchmark_performance --ckpt logs/.../best.ckpt --input-shape 1 1 256 256 --compare-opts "
       "--output report.json\n"
       "  benchmark_performance --config im2im/segmentation --input-shape 2 1 128 128 --train "
       "--compare-opts",
       "benchmark_performance",
       "cytra_benchmark_performance",
       {{"--config",
         "config",
         Takes::one,
         "experiment that describes the model (its overrides may follow), or a run's folder"},
        {"--ckpt",
         "checkpoint.ckpt_path",
         Takes::one,
         "checkpoint to measure; brings its own config"},
        {"--input-shape",
         "input_shape",
         Takes::many,
         "N C [D] H W (default: one of the model's channels, 256^2 or 64^3)"},
        {"--batch-sizes", "batch_sizes", Takes::many, "batch sizes to measure"},
        {"--inference", "inference", Takes::nothing, "measure the model's pass (default)"},
        {"--train",
         "train",
         Takes::nothing,
         "measure training steps: forward, loss, backward, clipping, update"},
        {"--train-step", "train", Takes::nothing, "the same as --train"},
        {"--service",
         "service",
         Takes::nothing,
         "measure a BatchingService: latency under loads of 10 to 120 %"},
        {"--compare-opts",
         "compare_opts",
         Takes::nothing,
         "measure every option, one by one and together"},
        {"--repeats", "repeats", Takes::one, "timed runs per figure"},
        {"--output", "output", Takes::many, "reports to write: NAME.json, NAME.html"},
        {"--baseline", "baseline", Takes::one, "an earlier JSON report to compare the rows with"},
        {"--threshold",
         "threshold",
         Takes::one,
         "exit with code 8 when a row is this many percent slower than the baseline, beyond the "
         "noise"}},
       {},
       "overrides"},
      argc,
      argv);
}
