// train: fits a model to a data set. See `train --help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  return cytra::cli::run(
      {"train",
       "train a model on images",
       "  train experiment=im2im/segmentation data.path=my_data\n"
       "  train experiment=im2im/segmentation data.path=my_data --check-data     # reads it all, "
       "reports problems\n"
       "  train --plan data.path=my_data                                       # writes an "
       "experiment for these images\n"
       "  train experiment=im2im/segmentation data.path=my_data trainer=gpu_optimized\n"
       "  train experiment=im2im/segmentation data.path=my_data checkpoint.ckpt_path=last  # go on "
       "with the newest run\n"
       "  train experiment=im2im/segmentation --cfg job                             # show the "
       "configuration",
       "train",
       "cytra_train",
       {{"--plan-output",
         "plan.output",
         cytra::cli::Flag::Takes::one,
         "with --plan: the file to write, FOLDER/experiment/NAME.yaml"}},
       {{"--check-data",
         "cytra_check_data",
         "read every image once, report what the images are and what is wrong; train nothing"},
        {"--plan",
         "cytra_plan",
         "look at the images and the free memory, write an experiment for them by nnU-Net's rules"},
        {"--find-lr",
         "cytra_find_lr",
         "try learning rates from lr_find.min_lr to lr_find.max_lr, suggest one; write nothing"}}},
      argc,
      argv);
}
