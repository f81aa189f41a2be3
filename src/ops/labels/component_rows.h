#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ops/labels/components.h"
#include "ops/labels/row_step.h"

namespace cytra::ops {

/// Numbers the components of labels of any size, and replaces them.
class ComponentRows final : public KeptLabels {
 public:
  struct Component {
    int32_t value = 0;  // that its voxels have
    int64_t voxels = 0;
  };
  /// Chooses the new value of each component. `all`: by the numbers of connected_components(); [0]
  /// is the background.
  using Choose = std::function<std::vector<int32_t>(const std::vector<Component>& all)>;
  ComponentRows(int64_t connectivity,
                std::vector<int64_t> image,
                std::string folder,
                Choose choose);

 protected:
  at::Tensor kept(const at::Tensor& rows) override;
  void change(at::Tensor& all) override;
  void finish(at::Tensor& rows) const override;

 private:
  const Choose choose_;
  StitchedComponents components_;
  std::vector<Component> parts_{{}};  // what slabs have of components
  std::vector<int32_t> values_;       // the new ones, by part
};

}  // namespace cytra::ops
