// batch_segment: a detector and a prompted segmenter over many images. See `batch_segment --help`.
#include "cli/arguments.h"
#include "cli/flag_map.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  using Takes = cytra::cli::Flag::Takes;
  const cytra::cli::Program program{
      "batch_segment",
      "find objects with a detector, and make a mask of each with a prompted segmenter",
      "  batch_segment folder --detector logs/.../detector.ckpt --segmenter "
      "logs/.../segmenter.ckpt\n"
      "  batch_segment folder --detector logs/.../detector.ckpt --segmenter "
      "logs/.../segmenter.ckpt --sam-batch-size 64 --image-batch-size 16 --io-workers 8",
      "batch_segment",
      "cytra_batch_segment",
      {{"--detector",
        "detector.path",
        Takes::one,
        "the model that finds boxes; one for each view: front=a.ckpt left=b.ckpt"},
       {"--segmenter", "segmenter.path", Takes::one, "the model that makes a mask of each box"},
       {"--device", "trainer.accelerator", Takes::one, "auto, cpu or cuda"},
       {"--mode", "segment.mode", Takes::one, "naive, optimized or parallel"},
       {"--preset", "segment.preset", Takes::one, "batch sizes: auto, cpu, t4, a10g, a100, h200"},
       {"--sam-batch-size",
        "segment.sam_batch_size",
        Takes::one,
        "boxes in one pass of the mask decoder"},
       {"--image-batch-size",
        "segment.image_batch_size",
        Takes::one,
        "images in one pass of detector and encoder"},
       {"--io-workers",
        "segment.io_workers",
        Takes::one,
        "threads that read, and as many that write"},
       {"--conf-threshold",
        "detector.conf_threshold",
        Takes::one,
        "detections with a lower score are left out"},
       {"--view",
        "data.view",
        Takes::one,
        "only images of this view (sub-folder, or column `view`)"},
       {"--cache-dir", "segment.cache_dir", Takes::one, "folder that keeps images' encodings"},
       {"--object-masks", "segment.object_masks", Takes::nothing, "also a PNG for each object"},
       {"--resume",
        "segment.resume",
        Takes::nothing,
        "go on in paths.output_dir; skip images that are done"},
       {"--prometheus", "segment.prometheus", Takes::one, "a file of figures for Prometheus"}}};
  cytra::cli::FlagMap map("--detector", "detector.path", "detector.views", argc, argv);
  cytra::cli::Words words(program, {"data.path"}, map.count(), map.data());
  return cytra::cli::run(program, words.count(), words.data());
}
