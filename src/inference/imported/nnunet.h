#pragma once
// nnU-Net's trained models: TRAINER__PLANS__CONFIGURATION/{plans.json, dataset.json,
// fold_N/checkpoint_final.pth}. Source: nnunetv2 2.8.1, nnUNetPredictor.
#include <string>
#include <vector>

#include "config/node.h"
#include "inference/models/trained_model.h"

namespace cytra::inference {

/// The checkpoints of a trained model's folder, one per fold, which nnU-Net averages: final ones,
/// else the best. Throws: DataError where there is none.
std::vector<std::string> nnunet_checkpoints(const std::string& folder);

/// A checkpoint as the files beside it describe it.
struct NnunetModelFile {
  /// The configuration, as LoadedModel's: nnU-Net's preprocessing, network, windows and labels.
  config::Node config;
  /// The axes of an image in the order in which the network takes them; empty: as they are.
  std::vector<int64_t> order;
};
/// Reads plans.json and dataset.json beside the folder of the fold. Throws: ConfigError, DataError
/// naming what is not known here: another network, a cascade, a normalization.
NnunetModelFile read_nnunet(const std::string& checkpoint);

/// Joins the classes of models, as ModelKindEntry::join says.
void join_nnunet(std::vector<LoadedModel>& models, const std::vector<std::size_t>& firsts);

}  // namespace cytra::inference
