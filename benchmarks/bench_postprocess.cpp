// bench_postprocess MASK.npy IMAGE.npy: CPU seconds of what becomes of a mask: components,
// distance, watershed (distance, peaks, floods), measurements. One JSON line.
#include <cstdio>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "cpu_time.h"
#include "data/sample/image_tensor.h"
#include "inference/outputs/measure.h"
#include "inference/postprocess/postprocess.h"
#include "io/reader.h"
#include "ops/labels/components.h"
#include "ops/labels/distance.h"

int main(int, char** argv) {
  using namespace cytra;
  const c10::InferenceMode inference;
  const auto load = [](const char* path) {
    const io::Image image = io::read_image(path);
    return data::to_tensor(image, image.shape[1] > 1 ? 3 : 2, path);
  };
  const at::Tensor mask = load(argv[1])[0], image = load(argv[2]);
  inference::Result result;
  result.values = mask.to(at::kInt).unsqueeze(0);
  result.is_labels = true;
  const auto steps = inference::make_postprocess(
      config::parse_yaml("[{_target_: Watershed, min_distance: 7}]", ""));
  const at::Tensor labels = ops::connected_components(mask, 1).labels;
  std::printf("{");
  bench::time_work("components", ", ", [&] { ops::connected_components(mask, 1); });
  bench::time_work("distance", ", ", [&] { ops::distance_transform(mask); });
  bench::time_work("watershed", ", ", [&] {
    inference::Result copy = result;
    inference::apply_all(steps, copy);
  });
  bench::time_work("measure", "}\n", [&] { inference::measure(labels, image, {}); });
}
