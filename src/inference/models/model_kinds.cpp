#include "inference/models/model_kinds.h"

#include <stdexcept>

namespace cytra::inference {

std::map<io::ModelKind, ModelKindEntry>& model_kinds() {
  static std::map<io::ModelKind, ModelKindEntry> entries;
  return entries;
}

bool add_model_kind(io::ModelKind kind, const ModelKindEntry& entry) {
  if (!model_kinds().emplace(kind, entry).second)
    throw std::logic_error("two ways to load one kind of model");
  return true;
}

}  // namespace cytra::inference
