#include "ops/labels/component_rows.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

namespace cytra::ops {

ComponentRows::ComponentRows(int64_t connectivity,
                             std::vector<int64_t> image,
                             std::string folder,
                             Choose choose)
    : KeptLabels(image, std::move(folder)),
      choose_(std::move(choose)),
      components_(connectivity, std::ssize(image)) {}

at::Tensor ComponentRows::kept(const at::Tensor& rows) {
  const at::Tensor dense = rows.contiguous();
  at::Tensor labels = components_.add(dense);
  const int32_t* const value = dense.const_data_ptr<int32_t>();
  const int32_t* const label = labels.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const auto part = static_cast<std::size_t>(label[i]);
    if (part >= parts_.size()) parts_.resize(part + 1);
    parts_[part].value = value[i];
    ++parts_[part].voxels;
  }
  return labels;
}

void ComponentRows::change(at::Tensor& /*all*/) {
  values_ = components_.finish();
  std::vector<Component> all(static_cast<std::size_t>(components_.count()) + 1);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    Component& whole = all[static_cast<std::size_t>(values_[part])];
    whole.value = parts_[part].value;
    whole.voxels += parts_[part].voxels;
  }
  const std::vector<int32_t> chosen = choose_(all);
  for (int32_t& value : values_) value = chosen[static_cast<std::size_t>(value)];
  parts_ = {};
}

void ComponentRows::finish(at::Tensor& rows) const {
  int32_t* const label = rows.mutable_data_ptr<int32_t>();
  std::transform(label, label + rows.numel(), label, [this](int32_t part) {
    return values_[static_cast<std::size_t>(part)];
  });
}

}  // namespace cytra::ops
