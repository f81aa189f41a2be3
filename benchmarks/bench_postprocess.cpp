// bench_postprocess MASK.npy IMAGE.npy: CPU seconds of what becomes of a mask: components,
// distance, watershed (distance, peaks, floods), measurements. One JSON line.
#include <cstdio>
#include <ctime>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "data/sample/image_tensor.h"
#include "inference/outputs/measure.h"
#include "inference/postprocess/postprocess.h"
#include "io/reader.h"
#include "ops/labels/components.h"
#include "ops/labels/distance.h"

namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The least of three times.
template <class Work>
void time_work(const char* name, const Work& work) {
  double best = 1e300;
  for (int i = 0; i < 3; ++i) {
    const double begin = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - begin);
  }
  std::printf("\"%s\": %.4f", name, best);
}

}  // namespace

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
  time_work("components", [&] { ops::connected_components(mask, 1); });
  std::printf(", ");
  time_work("distance", [&] { ops::distance_transform(mask); });
  std::printf(", ");
  time_work("watershed", [&] {
    inference::Result copy = result;
    inference::apply_all(steps, copy);
  });
  std::printf(", ");
  time_work("measure", [&] { inference::measure(labels, image, {}); });
  std::printf("}\n");
}
