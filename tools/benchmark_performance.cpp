// benchmark_performance: latency, throughput and memory of a model under each option. See `--help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  using Takes = cytra::cli::Flag::Takes;
  return cytra::cli::run(
      {"benchmark_performance",
       "measure a model's latency, throughput and peak memory",
       "  benchmark_performance --config im2im/segmentation --input-shape 1 1 256 256 "
       "--batch-sizes 1 2 4\n"
       "  benchmark_performance --ckpt logs/.../best.ckpt --input-shape 1 1 256 256 --compare-opts "
       "--output report.json",
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
        {"--compare-opts",
         "compare_opts",
         Takes::nothing,
         "measure every option, not the eager baseline alone"},
        {"--train-step", "train_step", Takes::nothing, "measure a training step, too"},
        {"--repeats", "repeats", Takes::one, "timed runs per figure"},
        {"--output", "output", Takes::one, "JSON report"}},
       {},
       "overrides"},
      argc,
      argv);
}
