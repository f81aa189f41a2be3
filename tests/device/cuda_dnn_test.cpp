#include "device/cuda_dnn.h"

#include <gtest/gtest.h>

namespace cytra::device {
namespace {

TEST(CudaDnn, VersionsThatAreWrongIn3dAreKnown) {
  for (const int64_t version : {90701, 91501, 91900, 92600})
    EXPECT_EQ(trouble_of_cudnn_in_3d(version), "") << version;
  for (const int64_t version : {90800, 91001, 91002, 91300, 91500})
    EXPECT_NE(trouble_of_cudnn_in_3d(version).find("3D convolutions"), std::string::npos)
        << version;
  EXPECT_EQ(trouble_of_cudnn_in_3d(91002).find("cuDNN 9.10.2 "), 0U);
}

}  // namespace
}  // namespace cytra::device
