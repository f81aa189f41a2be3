// bench_loader FOLDER WORKERS EPOCHS RAM_GB: images per second of the loader over FOLDER/*.tif,
// after one epoch to warm up, and what a batch costs when there is nothing to load. One JSON line.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ATen.h>

#include "base/files.h"
#include "data/datamodule.h"
#include "data/loader/loader.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr const char* kTransforms = R"(train:
  - {_target_: LoadImaged, keys: [image]}
  - {_target_: RandSpatialCropd, keys: [image], roi_size: [256, 256]}
  - {_target_: RandFlipd, keys: [image], prob: 0.5, spatial_axis: [0]}
  - {_target_: RandFlipd, keys: [image], prob: 0.5, spatial_axis: [1]}
  - {_target_: RandRotate90d, keys: [image], prob: 0.5, spatial_axes: [0, 1]}
  - {_target_: NormalizeIntensityd, keys: [image]}
)";

int64_t run_epoch(cytra::data::DataLoader& loader, int64_t epoch, bool more) {
  int64_t images = 0;
  loader.start_epoch(epoch, 0, more);
  while (const auto batch = loader.next()) images += batch->tensors.begin()->second.size(0);
  return images;
}

/// Microseconds per batch of samples that are there already.
double overhead(int64_t workers) {
  cytra::data::DataLoaderSpec spec;
  spec.options.batch_size = 16;
  spec.options.num_workers = workers;
  spec.items.resize(16 * 2000);
  for (auto& item : spec.items) item.tensors["image"] = at::zeros({1, 1, 1});
  cytra::data::DataLoader loader(std::move(spec));
  run_epoch(loader, 0, true);
  const auto begin = Clock::now();
  run_epoch(loader, 1, false);
  return seconds_since(begin) * 1e6 / static_cast<double>(loader.size());
}

/// "VmHWM": the most memory this process has had, in MB.
double peak_mb() {
  const std::string status = cytra::read_file("/proc/self/status");
  return std::atof(status.c_str() + status.find("VmHWM:") + 6) / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("usage: bench_loader FOLDER WORKERS EPOCHS RAM_GB\n", stderr), 2;
  const int64_t workers = std::atoll(argv[2]), epochs = std::atoll(argv[3]);
  const auto transforms = cytra::config::parse<cytra::data::SplitTransforms>(
      cytra::config::parse_yaml(kTransforms, "bench_loader"));
  cytra::data::DataLoaderSpec spec;
  spec.items = cytra::data::list_folder(argv[1], "image");
  spec.transforms = cytra::data::make_transforms(transforms, cytra::data::Split::train);
  spec.options.batch_size = 16;
  spec.options.num_workers = workers;
  spec.options.ram_cache_gb = std::atof(argv[4]);
  spec.cache = cytra::data::make_cache(spec.options);
  spec.shuffle = true;
  cytra::data::DataLoader loader(std::move(spec));
  run_epoch(loader, 0, true);
  const auto begin = Clock::now();
  int64_t images = 0;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch)
    images += run_epoch(loader, epoch, epoch < epochs);
  const double seconds = seconds_since(begin);
  const double peak = peak_mb();
  std::printf("{\"ms_per_image\": %.5f, \"peak_mb\": %.1f, \"us_per_empty_batch\": %.2f}\n",
              seconds * 1e3 / static_cast<double>(images),
              peak,
              overhead(workers));
}
