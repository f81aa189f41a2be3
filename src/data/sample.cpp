#include "data/sample.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace cytra::data {
namespace {

template <class Map>
auto& find(Map& tensors, const std::string& key, const std::string& id) {
  const auto place = tensors.find(key);
  if (place != tensors.end()) return place->second;
  std::vector<std::string> keys;
  for (const auto& [name, tensor] : tensors) keys.push_back(name);
  throw DataError(id + ": no image under the key '" + key + "'." + suggestion(key, keys));
}

}  // namespace

at::Tensor& Sample::at(const std::string& key) {
  at::Tensor& tensor = stored(key);
  if (tensor.scalar_type() != at::kFloat) tensor = tensor.to(at::kFloat);
  return tensor;
}

at::Tensor& Sample::stored(const std::string& key) {
  return find(tensors, key, id);
}

const at::Tensor& Batch::at(const std::string& key) const {
  return find(tensors, key, ids.empty() ? "" : ids.front());
}

}  // namespace cytra::data
