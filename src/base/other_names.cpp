#include "base/other_names.h"

#include <map>

#include "base/error.h"

namespace cytra {

std::string name_here(const std::string& name) {
  static const std::map<std::string, std::string> names{
      {"Affine", "RandAffined"},
      {"Blur", "RandGaussianSmoothd"},
      {"CLAHE", "HistogramNormalized, over whole images"},
      {"CenterCrop", "CenterSpatialCropd (roi_size)"},
      {"CoarseDropout", "RandCoarseDropoutd"},
      {"CropNonEmptyMaskIfExists", "RandCropByPosNegLabeld"},
      {"Downscale", "RandSimulateLowResolutiond"},
      {"ElasticTransform", "Rand2DElasticd, of stacks Rand3DElasticd"},
      {"Equalize", "HistogramNormalized"},
      {"GaussNoise", "RandGaussianNoised"},
      {"GaussianBlur", "RandGaussianSmoothd"},
      {"GridDistortion", "RandGridDistortiond"},
      {"HorizontalFlip", "RandFlipd with spatial_axis: [-1]"},
      {"LongestMaxSize", "Resized with size_mode: longest"},
      {"MedianBlur", "MedianSmoothd"},
      {"Normalize", "NormalizeIntensityd (subtrahend, divisor)"},
      {"PadIfNeeded", "SpatialPadd (spatial_size)"},
      {"RandomBrightnessContrast", "RandScaleIntensityd and RandShiftIntensityd"},
      {"RandomCrop", "RandSpatialCropd (roi_size)"},
      {"RandomGamma", "RandAdjustContrastd"},
      {"RandomResizedCrop", "RandZoomd, then RandSpatialCropd"},
      {"RandomRotate90", "RandRotate90d"},
      {"Resample", "SpatialResampled"},
      {"Resampled", "Spacingd (to a spacing) or ResampleToMatchd (to another image)"},
      {"Resize", "Resized (spatial_size)"},
      {"Rotate", "RandRotated (range_x, in radians)"},
      {"ShiftScaleRotate", "RandAffined"},
      {"ToFloat", "ScaleIntensityd"},
      {"ToTensorV2", "ToTensord; LoadImaged gives tensors, so it may be left out"},
      {"VerticalFlip", "RandFlipd with spatial_axis: [-2]"},
      {"deepspeed", "ddp: each device holds the whole model, weights are not sharded"},
      {"fp16", "16-mixed"},
      {"fp32", "32"},
      {"fsdp", "ddp: each device holds the whole model, weights are not sharded"}};
  const auto found = names.find(name.substr(name.rfind('.') + 1));  // albumentations.RandomCrop
  return found == names.end() ? "" : found->second;
}

std::string near_hint(const std::string& word, const std::vector<std::string>& choices) {
  const std::string here = name_here(word);
  if (!here.empty()) return " In Cytra it is " + here + ".";
  const std::string best = nearest(word, choices);
  return best.empty() ? "" : " Did you mean '" + best + "'?";
}

}  // namespace cytra
