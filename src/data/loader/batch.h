#pragma once
// Batches of samples, which loaders make and tasks take.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::data {

struct Sample;

struct Batch {
  std::map<std::string, at::Tensor> tensors;  // key -> (N,C,[D,]H,W) float32
  /// The images with Collate::list, instead of `tensors`: key -> N images of any size.
  std::map<std::string, std::vector<at::Tensor>> lists;
  std::vector<std::string> ids;
  std::vector<io::Geometry> geometries;  // of each sample's image
  std::vector<uint64_t> keys;            // of each sample: a seed for later random steps
  int64_t number = 0;                    // in its epoch
  /// The tensor of a key. Throws: DataError with the nearest key.
  const at::Tensor& at(const std::string& key) const;
};

/// Images of one batch with different sizes: an error, padded with 0 around to the largest (MONAI's
/// pad_list_data_collate), or kept apart (list_data_collate).
enum class Collate { stack, pad, list };

struct BatchLayout {
  Collate collate = Collate::stack;
  bool channels_last = false;  // of images (2D or 3D) with several channels
  bool pin = false;            // page-locked; a CUDA device must be in use
};

/// The memory of batches, reused once its batch is no longer held. Thread-safe.
class BatchMemory {
 public:
  /// `most`: the number of tensors kept at a time; further ones are freed with their last user.
  explicit BatchMemory(std::size_t most) : most_(most) {}
  at::Tensor take(at::IntArrayRef sizes, const BatchLayout& layout);

 private:
  std::mutex mutex_;
  std::size_t most_;
  std::vector<at::Tensor> kept_;
};

/// A batch that threads fill row by row; each row once.
class BatchBuilder {
 public:
  BatchBuilder(int64_t rows, const BatchLayout& layout, BatchMemory& memory);
  ~BatchBuilder();
  /// Sets a row. Thread-safe for different rows. Throws: DataError naming the sample whose keys or
  /// sizes differ from those of the others.
  void set(int64_t row, Sample sample, uint64_t key);
  /// Returns the batch without the rows that were not set. Called once, after the last set().
  Batch finish();

 private:
  struct Row;
  void copy(int64_t row, Sample& sample);
  void gather(Batch& batch);
  BatchLayout layout_;
  BatchMemory& memory_;
  std::mutex mutex_;  // of tensors_ while the first row makes it
  std::map<std::string, at::Tensor> tensors_;
  std::vector<Row> rows_;
};

/// Makes a batch of all samples.
Batch collate(std::vector<Sample> samples, const BatchLayout& layout = {});

}  // namespace cytra::data
