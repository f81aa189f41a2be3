#pragma once
// What a request of the Open Inference Protocol holds: its images, and the outputs that it wants.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/serve/tensors/shared_regions.h"
#include "io/image.h"

namespace cytra::app {

/// The protocol's name of a type: "UINT8"; "" for one that it does not have.
const char* type_name(io::Dtype dtype);

/// The images of a request.
struct InputTensor {
  io::Dtype dtype = io::Dtype::f32;
  std::vector<int64_t> shape;    // as it came
  std::size_t dims = 2;          // those in space; before them may be images, channels
  std::array<int64_t, 4> one{};  // C, Z, Y, X of an image
  int64_t count = 1;
  std::string bytes;
  std::shared_ptr<const RequestBudget::Share> share;  // of bytes from shared memory
  std::size_t image_bytes() const {
    return static_cast<std::size_t>(one[0] * one[1] * one[2] * one[3]) * io::size_of(dtype);
  }
  io::Image image(int64_t number) const {
    io::Image image;
    image.dtype = dtype;
    image.shape = one;
    const char* begin = bytes.data() + static_cast<std::size_t>(number) * image_bytes();
    image.pixels.assign(begin, begin + image_bytes());
    return image;
  }
};

/// An output that a request wants.
struct OutputTensor {
  std::string name, region;  // "": not in shared memory
  int64_t offset = 0, bytes = 0;
  bool is_binary = false;
};

/// Reads the input `image` of a request. `binary`: what follows its JSON; `dims`, `channels`: of
/// the model's images. A model of 2 takes also stacks, (N,C,D,H,W), (C,D,H,W) and (D,H,W), where
/// the first side of the last two, or the second of (N,C,H,W), can't be its channels. Throws:
/// HttpError.
InputTensor input_of(const Json& body,
                     std::string binary,
                     const SharedRegions& regions,
                     int64_t dims,
                     int64_t channels);
/// Reads the outputs of a request; `usual`: where it names none. Throws: HttpError.
std::vector<OutputTensor> outputs_of(const Json& body, const std::string& usual);

}  // namespace cytra::app
