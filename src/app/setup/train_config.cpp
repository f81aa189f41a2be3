#include "app/setup/train_config.h"

#include "base/error.h"

namespace cytra::app {

void TrainConfig::check() const {
  const config::Node* window = task.find("inference_args.roi_size");
  const config::Node* dims = task.find("model.spatial_dims");
  if (window == nullptr || window->kind != config::Kind::list || dims == nullptr ||
      dims->kind != config::Kind::integer || dims->integer < 2 || dims->integer > 3)
    return;
  const auto count = static_cast<int64_t>(window->list.size());
  if (count <= 1 || count == dims->integer) return;
  throw ConfigError(
      "task.inference_args.roi_size ({}): {} numbers, but spatial_dims is {}, expected as many; a "
      "patch_shape that is left out follows spatial_dims",
      window->origin.text(),
      count,
      dims->integer);
}

}  // namespace cytra::app
