#pragma once
#include <cstdint>

#include "config/registry.h"
#include "data/sample.h"

namespace cytra::data {

/// The lists of transforms, by split.
struct SplitTransforms {
  config::Node train, valid, test, predict;
  template <class V>
  void visit(V& v) {
    const config::Part transforms = config::list_of<Transform>();
    v("train", train, "transforms of training images, in order", transforms);
    v("valid", valid, "of validation images; null: none", transforms);
    v("test", test, "of test images; null: none", transforms);
    v("predict", predict, "of images to predict; null: as valid", transforms);
  }
};

/// Keys every data module takes, with CytoDL's and torch's names.
struct LoaderOptions {
  int64_t batch_size = 1, num_workers = 2, prefetch_factor = 2;
  bool pin_memory = true, drop_last = false;
  double ram_cache_gb = 2;
  SplitTransforms transforms;
  template <class V>
  void visit(V& v) {
    v("batch_size", batch_size, "images per batch, each giving num_samples crops", 1, 1e6);
    v("num_workers",
      num_workers,
      "threads that load and transform; 0: in the training thread",
      0,
      1024);
    v("prefetch_factor", prefetch_factor, "batches kept ready per worker", 1, 1024);
    v("pin_memory", pin_memory, "page-locked batches when a CUDA device is used");
    v("drop_last", drop_last, "leave out the last batch of an epoch when it is short");
    v("ram_cache_gb", ram_cache_gb, "GB of decoded images kept in memory between epochs", 0, 1e6);
    v("transforms", transforms, "what is done to images, by split");
  }
};

}  // namespace cytra::data
