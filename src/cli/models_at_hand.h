#pragma once
// Trained models that are named by a word, as `nuclei`: NAME.ckpt, or NAME.onnx, in the folders of
// CYTRA_MODELS (separated by ':') and in models/ beside configs/, with a card NAME.md beside it.
#include <string>
#include <vector>

namespace cytra::cli {

struct ModelAtHand {
  std::string name, file;
};

/// All, sorted by name; of equal names that of the earlier folder, and NAME.ckpt before NAME.onnx.
std::vector<ModelAtHand> models_at_hand();

/// Returns those of them whose card says that their `result` is an image.
std::vector<ModelAtHand> models_that_make_images();

/// What is to be read of them: name, file, size in bytes, and task, result, images, score, license
/// and source as the head of each card says them (YAML between lines of ---). `json`: an array.
std::string list_of_models(bool json);

}  // namespace cytra::cli
