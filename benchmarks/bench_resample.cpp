// bench_resample IMAGE.npy: CPU seconds of bringing a volume to other voxels: 1.25 times finer by
// the nearest voxel, linearly and by cubic splines, and turned by 20 degrees, linearly. One JSON
// line.
#include <cmath>
#include <cstdio>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "cpu_time.h"
#include "data/sample/image_tensor.h"
#include "data/sample/resample.h"
#include "data/sample/spline.h"
#include "io/reader.h"

int main(int, char** argv) {
  using namespace cytra;
  namespace spatial = data::spatial;
  const c10::InferenceMode inference;
  const at::Tensor image = data::to_tensor(io::read_image(argv[1]), 3, argv[1]);
  std::vector<int64_t> size = image.sizes().slice(1).vec();
  at::Tensor turned = at::eye(4, at::kDouble);
  const double angle = M_PI / 9;
  turned[1][1] = turned[2][2] = std::cos(angle);
  turned[1][2] = -std::sin(angle);
  turned[2][1] = std::sin(angle);
  const auto sampled = [&](const at::Tensor& matrix, const char* mode) {
    spatial::sample_affine(image, matrix, size, mode, "border", at::kDouble, true);
  };
  std::printf("{");
  bench::time_work("turned", ", ", [&] { sampled(turned, "bilinear"); });
  at::Tensor finer = at::eye(4, at::kDouble);
  for (int64_t d = 0; d < 3; ++d) {
    auto& side = size[static_cast<std::size_t>(d)];
    finer[d][d] = static_cast<double>(side - 1) / static_cast<double>(side * 5 / 4 - 1);
    side = side * 5 / 4;
  }
  bench::time_work("nearest", ", ", [&] { sampled(finer, "nearest"); });
  bench::time_work("linear", ", ", [&] { sampled(finer, "bilinear"); });
  bench::time_work("cubic", "}\n", [&] {
    spatial::sample_spline(image, finer, size, 3, "border", true);
  });
}
