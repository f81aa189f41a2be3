#include "data/sample/image_tensor.h"

#include <cstring>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace cytra::data {
namespace {

io::Image numbered(io::Dtype dtype) {
  io::Image image;
  image.dtype = dtype;
  image.shape = {2, 1, 3, 4};
  image.pixels.resize(image.bytes());
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<unsigned char>(i % 100);
  return image;
}

TEST(ImageTensor, TakesThePixelsOfAnImage) {
  for (const io::Dtype dtype : {io::Dtype::u8, io::Dtype::u16, io::Dtype::i16, io::Dtype::f32}) {
    io::Image image = numbered(dtype);
    const io::Image same = image;
    const void* pixels = image.pixels.data();
    const at::Tensor tensor = to_tensor(std::move(image), 2, "");
    EXPECT_EQ(tensor.const_data_ptr(), pixels);
    EXPECT_EQ(tensor.sizes(), (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(to_tensor(same, 3, "").sizes(), (std::vector<int64_t>{2, 1, 3, 4}));
    const io::Image back = to_image(tensor, dtype, {});
    EXPECT_EQ(back.shape, same.shape);
    EXPECT_TRUE(back.pixels == same.pixels);
  }
}

TEST(ImageTensor, IsOfTheTypeAsked) {
  const at::Tensor values = at::arange(24, at::TensorOptions(at::kLong)).reshape({2, 4, 3});
  for (const at::Tensor& tensor : {values, values.transpose(1, 2), values.to(at::kFloat)}) {
    const io::Image image = to_image(tensor, io::Dtype::u16, {});
    EXPECT_EQ(image.shape, (std::array<int64_t, 4>{2, 1, tensor.size(1), tensor.size(2)}));
    EXPECT_TRUE(at::equal(to_tensor(image, 2, "").to(at::kLong), tensor.to(at::kLong)));
  }
  const io::Image real = to_image(at::full({1, 2, 2}, 0.1, at::kDouble), io::Dtype::f64, {});
  EXPECT_EQ(to_tensor(real, 2, "").scalar_type(), at::kFloat);
  io::Image stack = numbered(io::Dtype::u8);
  stack.shape = {1, 2, 3, 4};
  EXPECT_THROW(to_tensor(stack, 2, "a.tif"), DataError);
}

TEST(ImageTensor, LargeNumbersOfFloat64StayApart) {
  io::Image image;
  image.dtype = io::Dtype::f64;
  image.shape = {1, 1, 1, 3};
  const auto read = [&](const std::vector<double>& values) {
    image.pixels.resize(image.bytes());
    std::memcpy(image.pixels.data(), values.data(), image.bytes());
    return to_tensor(image, 2, "");
  };
  const at::Tensor labels = read({0, 16777216, 16777217});
  EXPECT_EQ(labels.scalar_type(), at::kLong);
  EXPECT_EQ(labels[0][0][2].item<int64_t>(), 16777217);
  for (const std::vector<double>& values :
       {std::vector<double>{0, 16777216, 0.5}, {0, 1, 2}, {0, 1e300, 2}})
    EXPECT_EQ(read(values).scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace cytra::data
