// MONAI's bundles.
#include "base/error.h"
#include "inference/foreign/foreign.h"

namespace cytra::inference {

LoadedModel open_bundle(const std::string& path) {
  throw DataError(path + ": a folder or a bundle, expected a file of one model");
}

}  // namespace cytra::inference
