#include "data/sample.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace cytra::data {

at::Tensor& Sample::at(const std::string& key) {
  at::Tensor& tensor = stored(key);
  if (tensor.scalar_type() != at::kFloat) tensor = tensor.to(at::kFloat);
  return tensor;
}

at::Tensor& Sample::stored(const std::string& key) {
  const auto place = tensors.find(key);
  if (place == tensors.end()) throw_missing(tensors, key, id);
  return place->second;
}

void throw_missing(const std::map<std::string, at::Tensor>& tensors,
                   const std::string& key,
                   const std::string& id) {
  std::vector<std::string> keys;
  for (const auto& [name, tensor] : tensors) keys.push_back(name);
  throw DataError(id + ": no image under the key '" + key + "'." + suggestion(key, keys));
}

}  // namespace cytra::data
