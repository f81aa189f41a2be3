#pragma once
// A trained model for nnU-Net.
#include <string>
#include <vector>

#include "config/options.h"
#include "inference/models/trained_model.h"

namespace cytra::app {

/// What nnU-Net needs to know, besides what the checkpoint knows.
struct NnunetOptions {
  std::string dataset_name, file_ending;
  std::vector<double> spacing;
  void visit(auto& v) {
    v("dataset_name",
      dataset_name,
      "nnU-Net's name of the data set, Dataset042_Cells; \"\": the output file's");
    v("file_ending",
      file_ending,
      "of the images, as in dataset.json; \"\": .png (2D) and .nii.gz (3D)");
    v("spacing",
      spacing,
      "distances between voxels, [z,]y,x, in the files' unit, to which nnU-Net resamples; []: "
      "Spacingd's, or 1 for files that nnU-Net reads without one (.png, .bmp, 2D .tif)");
  }
};

/// Checks the names. Throws: ConfigError.
void expect_nnunet_options(const NnunetOptions& options, const std::string& output);

/// Writes the ZIP archive `output`, which nnUNetv2_install_pretrained_model_from_zip takes:
/// NAME/nnUNetTrainer__nnUNetPlans__{2d,3d_fullres}/{plans.json, dataset.json,
/// fold_0/checkpoint_final.pth}. A mask becomes the second of two classes, whose first has zero
/// weights. Throws: ConfigError for a network, a transform or an output that nnU-Net does not have;
/// what AtomicFile throws. Source: nnunetv2 2.8.1, nnUNetPredictor and PlansManager.
void write_nnunet(const std::string& output,
                  const NnunetOptions& options,
                  const inference::LoadedModel& model);

}  // namespace cytra::app
