#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "config/registry.h"
#include "data/loader/batch_transform.h"
#include "data/sample/sample.h"

namespace cytra::data {

/// The lists of transforms, by split.
struct SplitTransforms {
  config::Node train, valid, test, predict, batch;
  void visit(auto& v) {
    const config::Part transforms = config::list_of<Transform>();
    v("train", train, "transforms of training images, in order", transforms);
    v("valid", valid, "transforms of validation images; null: none", transforms);
    v("test", test, "transforms of test images; null: as valid", transforms);
    v("predict", predict, "transforms of images to predict; null: as valid", transforms);
    v("batch",
      batch,
      "random transforms of training batches, on the model's device; null: none",
      config::list_of<BatchTransform>());
  }
};

/// Keys that every data module takes, with CytoDL's and torch's names.
struct LoaderOptions {
  static constexpr int64_t kAutoWorkers = -1;
  int64_t batch_size = 1,  // 0: AUTO
      num_workers = 2, prefetch_factor = 2;
  bool pin_memory = true, drop_last = false, replacement = true;
  std::optional<int64_t> num_samples, max_memory_mb;
  std::string collate = "stack", on_error = "fail", on_mismatch = "error";
  double timeout = 0, timeout_warning = 30;
  double ram_cache_gb = 2, disk_cache_gb = 50;
  std::optional<std::string> cache_dir, axes;
  std::optional<double> fill_nan;
  std::string cache_compression = "none";
  SplitTransforms transforms;
  void visit(auto& v) {
    v("axes",
      axes,
      "the files' axes where they don't say or are wrong, the slowest first: TYX, ZCYX, ...; of "
      "TIFF, "
      "NumPy, HDF5 and Zarr");
    v("batch_size",
      batch_size,
      "images per batch, each giving num_samples crops; AUTO: the fastest that fits is tried out",
      config::Keyword{1, 1e6, "AUTO", 0});
    v("max_memory_mb",
      max_memory_mb,
      "MB that a step of batch_size=AUTO may take, with the model: of the device's memory, or a "
      "CPU's process; null: what is free",
      1,
      1e9);
    v("num_workers",
      num_workers,
      "threads that load and transform; 0: in the training thread; AUTO: half of the processors at "
      "hand, from 2 to 8",
      config::Keyword{0, 1024, "AUTO", kAutoWorkers});
    v("prefetch_factor", prefetch_factor, "batches kept ready per worker", 1, 1024);
    v("pin_memory", pin_memory, "page-locked batches when a CUDA device is used");
    v("drop_last", drop_last, "leave out the last batch of an epoch when it is short");
    v("collate",
      collate,
      "images of different sizes in one batch: an error, padded with 0 to the largest, or a list",
      {"stack", "pad", "list"});
    v("on_error",
      on_error,
      "an image that can't be loaded: ends the run, is left out, or replaced by another; skip and "
      "replace say which at the end",
      {"fail", "skip", "replace"});
    v("on_mismatch",
      on_mismatch,
      "a target whose file says that it does not lie on its image (other voxels, another place): "
      "an error, resampled to the nearest voxel, or taken as it is where the sizes are equal",
      kMismatches);
    v("fill_nan",
      fill_nan,
      "put in place of values that are NaN or infinite, as MONAI's SignalFillEmptyd; null: an "
      "error");
    v("timeout", timeout, "seconds to wait for a batch before it is an error; 0: no limit", 0, 1e6);
    v("timeout_warning",
      timeout_warning,
      "seconds after which a warning names the image that is waited for",
      0.1,
      1e6);
    visit_weights(v);
    visit_cache(v);
    visit_unused(v);
    v("transforms", transforms, "what is done to images, by split");
  }
  void check() const {
    if (axes) io::check_axes(*axes);
  }
  /// The number of workers for each of `processes` processes on this machine, also for AUTO.
  int64_t workers(int64_t processes = 1) const;

 private:
  void visit_weights(auto& v) {
    v("num_samples",
      num_samples,
      "images drawn per epoch when they have weights; null: as many as there are",
      1,
      1e12);
    v("replacement", replacement, "weighted drawing may take an image again");
  }
  void visit_cache(auto& v) {
    v("ram_cache_gb", ram_cache_gb, "GB of images kept in memory between epochs", 0, 1e6);
    v("cache_dir",
      cache_dir,
      "folder of images that are ready for the random transforms, shared by runs; null: none");
    v("disk_cache_gb", disk_cache_gb, "GB that cache_dir may take", 0, 1e9);
    v("cache_compression",
      cache_compression,
      "compression of cache_dir; zstd takes less space and more time",
      {"none", "zstd"});
  }
  /// Visits options that torch's DataLoader, MONAI's data sets and CytoDL take.
  void visit_unused(auto& v) {
    using config::Unused;
    v("persistent_workers", Unused{{"true"}}, "workers always live as long as the training");
    v("shuffle", Unused{{"true"}}, "training images are shuffled, others never");
    v("multiprocessing_context", Unused{{"null"}}, "workers are threads");
    v("worker_init_fn", Unused{{"null"}}, "`seed` decides every draw, whatever the workers");
    v("generator", Unused{{"null"}}, "`seed` decides every draw");
    v("sampler", Unused{{"null"}}, "a data module's weight_column makes images come more often");
    v("batch_sampler", Unused{{"null"}}, "use batch_size and drop_last");
    v("collate_fn", Unused{{"null"}}, "use collate");
    v("pin_memory_device", Unused{{"null", ""}}, "use trainer.accelerator");
    v("in_order", Unused{{"true"}}, "batches always come in order");
    v("cache_rate", Unused{{"1.0", "1"}}, "use ram_cache_gb");
    v("cache_num", Unused{{"null"}}, "use ram_cache_gb");
    v("smartcache_args", Unused{{"null"}}, "images are kept by ram_cache_gb and cache_dir");
  }
};

}  // namespace cytra::data
