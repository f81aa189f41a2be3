// optimize: what holds a training back, and what to change. See `optimize --help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  return cytra::cli::run(
      {"optimize",
       "find out what slows a training down, and what makes it faster",
       "  optimize experiment=im2im/segmentation data.path=my_data --detect-bottlenecks\n"
       "  optimize                             # the same, of the newest run below logs/train\n"
       "  optimize experiment=im2im/segmentation data.path=my_data --detect-bottlenecks --seconds "
       "20 --json\n"
       "  optimize experiment=im2im/segmentation data.path=my_data --auto-optimize --config-dir "
       "mine",
       "train",
       "cytra_detect_bottlenecks",
       {{"--seconds", "optimize.seconds", cytra::cli::Flag::Takes::one, "how long to measure"}},
       {{"--detect-bottlenecks",
         "cytra_detect_bottlenecks",
         "run the experiment for a while; report where the time goes and the best change (also "
         "without a flag)"},
        {"--auto-optimize",
         "cytra_auto_optimize",
         "try batch sizes, loaders, layouts; write the fastest for performance=auto_cpu or "
         "auto_cuda"}},
       nullptr,
       /*takes_newest=*/true},
      argc,
      argv);
}
