#include "data/loader/batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/sample/sample.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

data::Sample sample_with(const std::string& id, const at::Tensor& image) {
  data::Sample sample;
  sample.id = id;
  sample.tensors["x"] = image;
  return sample;
}

TEST(Collate, NamesTheSampleThatDiffers) {
  try {
    data::collate({sample_with("a", at::zeros({1, 4, 4})), sample_with("b", at::zeros({1, 4, 5}))});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()),
              "b: 'x' is 1x4x5, that of a in the same batch is 1x4x4; crop to one size, or set "
              "data.batch_size=1 or data.collate=pad");
  }
  for (const data::Collate collate : {data::Collate::stack, data::Collate::pad}) {
    EXPECT_EQ(message_of<DataError>([&] {
                data::collate({sample_with("a", at::zeros({1, 4, 4})),
                               sample_with("b", at::zeros({3, 4, 4}))},
                              {collate, false, false});
              }),
              "b: 'x' is 3x4x4, that of a in the same batch is 1x4x4; expected the same channels "
              "and dimensions: leave one of them out");
  }
  data::Sample other = sample_with("b", at::zeros({1, 4, 4}));
  other.tensors["y"] = at::zeros({1, 4, 4});
  EXPECT_THROW(data::collate({sample_with("a", at::zeros({1, 4, 4})), other}), DataError);
}

TEST(Collate, MakesFloatsOfStoredTypes) {
  const at::Tensor bytes = at::arange(16).to(at::kByte).reshape({1, 4, 4});
  const data::Batch batch =
      data::collate({sample_with("a", bytes), sample_with("b", bytes.to(at::kUInt16))});
  EXPECT_EQ(batch.at("x").scalar_type(), at::kFloat);
  EXPECT_TRUE(batch.at("x")[0].equal(bytes.to(at::kFloat)));
  EXPECT_TRUE(batch.at("x")[1].equal(bytes.to(at::kFloat)));
  EXPECT_EQ(batch.ids, (std::vector<std::string>{"a", "b"}));
}

TEST(Collate, ABatchIsItsOwnersToChange) {
  for (const data::Collate collate :
       {data::Collate::stack, data::Collate::pad, data::Collate::list}) {
    for (const bool channels_last : {false, true}) {
      const at::Tensor kept = at::randn({2, 4, 5}), same = kept.clone();  // as a cache does
      data::Sample sample = sample_with("a", kept);
      sample.tensors["again"] = kept;
      std::vector<float> mapped(20, 1);  // as a cache's file, which can't be written to
      sample.tensors["mapped"] = at::from_blob(mapped.data(), {1, 4, 5});
      data::Batch batch = data::collate({sample}, {collate, channels_last, false});
      for (auto& [key, rows] : batch.tensors) rows.fill_(7);
      for (auto& [key, list] : batch.lists) list[0].fill_(7);
      EXPECT_TRUE(kept.equal(same));
      EXPECT_EQ(mapped, std::vector<float>(20, 1));
    }
  }
  at::Tensor fresh = at::randn({1, 4, 5});
  const void* const memory = fresh.const_data_ptr();
  std::vector<data::Sample> samples(1);
  samples[0].tensors["x"] = std::move(fresh);
  EXPECT_EQ(data::collate(std::move(samples)).at("x").const_data_ptr(), memory)
      << "an image that no one else has needs no copy";
}

TEST(Collate, WritesChannelsLast) {
  for (const std::vector<int64_t>& size :
       {std::vector<int64_t>{3, 4, 5}, std::vector<int64_t>{3, 2, 4, 5}}) {
    const at::Tensor a = at::randn(size), b = at::randn(size);
    const auto format =
        size.size() == 3 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
    const data::Batch batch = data::collate({sample_with("a", a), sample_with("b", b)},
                                            {data::Collate::stack, /*channels_last=*/true, false});
    EXPECT_TRUE(batch.at("x").is_contiguous(format));
    EXPECT_TRUE(batch.at("x").equal(at::stack({a, b})));
    EXPECT_TRUE(data::collate({sample_with("a", a)}, {data::Collate::stack, true, false})
                    .at("x")
                    .is_contiguous(format));
  }
}

// As monai.data.pad_list_data_collate: half of what is missing before, the odd one after.
TEST(Collate, PadsToTheLargest) {
  const data::Batch batch =
      data::collate({sample_with("a", at::ones({1, 2, 5})), sample_with("b", at::ones({1, 5, 3}))},
                    {data::Collate::pad, false, false});
  ASSERT_EQ(batch.at("x").sizes(), (std::vector<int64_t>{2, 1, 5, 5}));
  at::Tensor a = at::zeros({1, 5, 5}), b = at::zeros({1, 5, 5});
  a.slice(1, 1, 3).fill_(1);
  b.slice(2, 1, 4).fill_(1);
  EXPECT_TRUE(batch.at("x")[0].equal(a));
  EXPECT_TRUE(batch.at("x")[1].equal(b));
  EXPECT_THROW(
      data::collate({sample_with("a", at::ones({1, 2, 5})), sample_with("b", at::ones({2, 2, 5}))},
                    {data::Collate::pad, false, false}),
      DataError);
}

TEST(Collate, KeepsImagesApartAsAList) {
  const data::Batch batch =
      data::collate({sample_with("a", at::ones({1, 2, 5})), sample_with("b", at::ones({2, 5}))},
                    {data::Collate::list, false, false});
  EXPECT_TRUE(batch.tensors.empty());
  ASSERT_EQ(batch.lists.at("x").size(), 2U);
  EXPECT_EQ(batch.lists.at("x")[1].sizes(), (std::vector<int64_t>{2, 5}));
}

TEST(BatchMemory, IsUsedAgainWhenNobodyHoldsTheBatch) {
  data::BatchMemory memory(4);
  const data::BatchLayout layout;
  at::Tensor first = memory.take({2, 1, 4, 4}, layout);
  const void* place = first.const_data_ptr();
  EXPECT_NE(memory.take({2, 1, 4, 4}, layout).const_data_ptr(), place);  // the first is held
  at::Tensor view = first[1];
  first.reset();
  EXPECT_NE(memory.take({2, 1, 4, 4}, layout).const_data_ptr(), place);  // by a view
  view.reset();
  EXPECT_EQ(memory.take({2, 1, 4, 4}, layout).const_data_ptr(), place);
  EXPECT_EQ(memory.take({2, 1, 4, 5}, layout).sizes(), (std::vector<int64_t>{2, 1, 4, 5}));
}

TEST(BatchBuilder, LeavesOutRowsThatWereNotSet) {
  data::BatchMemory memory(4);
  data::BatchBuilder builder(3, {}, memory);
  builder.set(2, sample_with("c", at::full({1, 2, 2}, 2)), 7);
  builder.set(0, sample_with("a", at::full({1, 2, 2}, 1)), 5);
  const data::Batch batch = builder.finish();
  EXPECT_EQ(batch.ids, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(batch.keys, (std::vector<uint64_t>{5, 7}));
  EXPECT_EQ(batch.at("x").size(0), 2);
  EXPECT_EQ(batch.at("x")[1].max().item<double>(), 2);
}

}  // namespace
}  // namespace cytra
