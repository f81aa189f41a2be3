#pragma once
#include <cstdint>
#include <string>

namespace cytra::device {

/// What is wrong with 3D convolutions by a version of cuDNN, such as 91002 of 9.10.2, and the way
/// out; empty: nothing that is known.
std::string trouble_of_cudnn_in_3d(int64_t version);
/// Warns of it once, where cuDNN has been loaded.
void warn_of_cudnn_in_3d();

}  // namespace cytra::device
