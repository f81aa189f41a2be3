#pragma once
// What the shapes of a file's weights say about the network that they are of.
#include <string>

#include "config/node.h"
#include "io/safetensors.h"

namespace cytra::nn {

class WeightShapes {
 public:
  /// `front`: what stands before all names. `whose`: for errors, "weights of ...". `path` and
  /// `tensors` must outlive it.
  WeightShapes(const std::string& path,
               const io::TensorViews& tensors,
               std::string front,
               const char* whose);
  bool has(const std::string& name) const { return tensors_.count(front_ + name) > 0; }
  /// A side of a tensor, 1 or more. Throws: DataError where it is not there.
  int64_t size(const std::string& name, std::size_t dimension) const;
  /// How many of the names "a.{}.b" are there, from 0 on.
  int64_t count(const std::string& pattern) const;

 private:
  const std::string& path_;
  const io::TensorViews& tensors_;
  std::string front_;
  const char* whose_;
};

/// The options of a SamEncoder whose weights begin with `name` ("image_encoder."). The sides of
/// tokens that blocks have learned are those of its image, or, for Cellpose-SAM (`are_resampled`),
/// of the image that Segment Anything takes.
config::Node sam_encoder_options(const WeightShapes& weights,
                                 const std::string& name,
                                 bool are_resampled = false);

}  // namespace cytra::nn
