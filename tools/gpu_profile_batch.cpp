// gpu_profile_batch: which batch sizes suit batch_segment on this machine. See `--help`.
#include "cli/flag_map.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  using Takes = cytra::cli::Flag::Takes;
  cytra::cli::FlagMap map("--detector", "detector.path", "detector.views", argc, argv);
  return cytra::cli::run(
      {"gpu_profile_batch",
       "measure batch sizes and stages of batch_segment on an image",
       "  gpu_profile_batch --test-image image.tif --detector logs/.../detector.ckpt --segmenter "
       "logs/.../segmenter.ckpt\n"
       "  gpu_profile_batch --test-image image.tif --detector logs/.../detector.ckpt --segmenter "
       "logs/.../segmenter.ckpt --benchmark-sam --profile-pipeline --view front",
       "gpu_profile_batch",
       "cytra_gpu_profile_batch",
       {{"--test-image", "test_image", Takes::one, "an image like those to be segmented"},
        {"--detector",
         "detector.path",
         Takes::one,
         "what finds boxes; by view: front=a.ckpt left=b.ckpt"},
        {"--segmenter", "segmenter.path", Takes::one, "what makes a mask of each box"},
        {"--benchmark-sam", "benchmark_sam", Takes::nothing, "boxes per second of each batch size"},
        {"--profile-pipeline",
         "profile_pipeline",
         Takes::nothing,
         "where the time goes, and what helps"},
        {"--view", "view", Takes::one, "which of the detectors by view finds its objects"},
        {"--conf-threshold",
         "detector.conf_threshold",
         Takes::one,
         "detections with a lower score are left out"},
        {"--device", "trainer.accelerator", Takes::one, "auto, cpu or cuda"}}},
      map.count(),
      map.data());
}
