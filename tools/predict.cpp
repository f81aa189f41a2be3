// predict: runs a trained model over whole images. See `predict --help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  return cytra::cli::run(
      {"predict",
       "predict whole images with a trained model",
       "  predict checkpoint.ckpt_path=logs/.../best.ckpt data.path=image.tif\n"
       "  predict checkpoint.ckpt_path=logs/.../best.ckpt data.path=folder paths.output_dir=out\n"
       "  predict checkpoint.ckpt_path=logs/.../best.ckpt data.path=test.csv "
       "inference_args.overlap=0.5\n"
       "  predict checkpoint.ckpt_path=logs/.../best.ckpt data.path=folder paths.output_dir=out "
       "--resume",
       "predict",
       "cytra_predict",
       {{"--resume",
         "predict.resume",
         cytra::cli::Flag::Takes::nothing,
         "go on in paths.output_dir; skip images that are done"},
        {"--dry-run",
         "predict.dry_run",
         cytra::cli::Flag::Takes::nothing,
         "report what would be done, and its time and memory; write nothing"}}},
      argc,
      argv);
}
