#include "perf/transfers.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace cytra::perf {

/// With a name of its own in the stack.
__attribute__((noinline)) double read_on_the_host(const at::Tensor& value) {
  return value.item<double>() + 1;
}

namespace {

std::string no_layer() {
  return "";
}

/// What `work` transfers, in the scope "forward".
template <class Work>
Transfers found_in(const Work& work, c10::Device device = c10::kCPU) {
  TransferWatch watch(device, no_layer);
  watch.begin_step(7);
  {
    RECORD_USER_SCOPE("forward");
    work();
  }
  return watch.found();
}

/// The only one of this kind.
std::pair<TransferPlace, TransferCount> only(const Transfers& found, Transfer kind) {
  std::vector<std::pair<TransferPlace, TransferCount>> all;
  for (const auto& one : found) {
    if (one.first.kind == kind) all.emplace_back(one);
  }
  EXPECT_EQ(all.size(), 1U) << name_of(kind);
  return all.empty() ? std::pair<TransferPlace, TransferCount>() : all[0];
}

TEST(TransferWatch, TellsOfValuesThatTheHostReads) {
  const at::Tensor value = at::ones({}, at::kDouble);
  const Transfers found = found_in([&] {
    for (int i = 0; i < 3; ++i) read_on_the_host(value);
  });
  const auto [place, count] = only(found, Transfer::host_read);
  EXPECT_EQ(place.phase, "forward");
  EXPECT_EQ(place.operation, "aten::item");
  EXPECT_TRUE(place.waits);
  EXPECT_FALSE(place.code.empty());
  EXPECT_EQ(place.code.find("at::"), std::string::npos) << place.code;
  EXPECT_EQ(count.calls, 3);
  EXPECT_EQ(count.bytes, 24);
  EXPECT_EQ(count.first_step, 7);
}

TEST(TransferWatch, TellsOfSizesThatDependOnValues) {
  const at::Tensor image = at::arange(6), mask = image.gt(2);
  EXPECT_EQ(only(found_in([&] { image.index({mask}); }), Transfer::host_read).first.operation,
            "aten::index");
  EXPECT_EQ(only(found_in([&] { image.masked_select(mask); }), Transfer::host_read).second.calls,
            1);
  EXPECT_EQ(only(found_in([&] { image.nonzero(); }), Transfer::host_read).second.calls, 1);
}

TEST(TransferWatch, NumbersOfTheCodeAreNotRead) {
  const at::Tensor image = at::rand({4, 4});
  const Transfers found = found_in(
      [&] { (image * 2).add(3.5).clamp_min(0).masked_fill(image.gt(0.5), 1.0).pow(2).sum(); });
  for (const auto& [place, count] : found) EXPECT_FALSE(place.waits) << place.operation;
}

TEST(TransferWatch, TellsCopiesApart) {
  const at::Tensor image = at::rand({2, 3, 4, 5});
  const auto kinds = [](const Transfers& found) {
    std::vector<Transfer> all;
    for (const auto& [place, count] : found) all.push_back(place.kind);
    return all;
  };
  EXPECT_EQ(kinds(found_in([&] { image.to(at::kDouble); })), std::vector{Transfer::cast});
  EXPECT_EQ(kinds(found_in([&] { image.contiguous(at::MemoryFormat::ChannelsLast); })),
            std::vector{Transfer::layout});
  EXPECT_EQ(kinds(found_in([&] { image.clone(); })), std::vector{Transfer::copy});
  EXPECT_EQ(kinds(found_in([&] { image.narrow(3, 1, 2).contiguous(); })),
            std::vector{Transfer::copy});
  EXPECT_TRUE(kinds(found_in([&] {
                image.to(at::kFloat);
                image.contiguous();
                image.view({-1});
              })).empty());
  const auto [place, count] = only(found_in([&] { image.to(at::kDouble); }), Transfer::cast);
  EXPECT_EQ(place.operation, "aten::to");
  EXPECT_FALSE(place.waits);
  EXPECT_EQ(count.bytes, 2 * 3 * 4 * 5 * 8);
}

TEST(TransferWatch, TellsOfTheWayToTheDevice) {  // torch's device without memory stands for one
  const at::Tensor image = at::rand({4});
  const auto [place, count] =
      only(found_in([&] { image.to(at::kMeta); }, c10::kMeta), Transfer::to_device);
  EXPECT_TRUE(place.waits) << "pageable memory";
  EXPECT_EQ(count.bytes, 16);
  EXPECT_TRUE(found_in([&] { image.to(at::kDouble).sum().item<double>(); }, c10::kMeta).empty())
      << "of the host alone";
}

TEST(TransferWatch, SeesOnTheHostWhatAGpuWouldWaitFor) {
  const at::Tensor image = at::rand({4});
  const auto copies = [&](const auto& work) {
    int64_t calls = 0;
    for (const auto& [place, count] : found_in(work))
      if (place.kind == Transfer::to_host && place.waits) calls += count.calls;
    return calls;
  };
  EXPECT_EQ(copies([&] { image.cpu(); }), 1);
  EXPECT_EQ(copies([&] { image.to(at::kCPU); }), 1);
  EXPECT_EQ(copies([&] { image.to(at::kCPU, at::kDouble).sum(); }), 1);
  EXPECT_EQ(copies([&] { image.to(at::kCPU, at::kDouble, /*non_blocking=*/true); }), 0);
  EXPECT_EQ(copies([&] { image.to(at::kDouble).to(image).add(1).to(at::kBool); }), 0);
}

TEST(TransferWatch, PlacesThoseOfABackwardPassByItsFunction) {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  const at::Tensor loss = weight.to(at::kDouble).sum();
  TransferWatch watch(c10::kCPU, no_layer);
  loss.backward();
  const auto [place, count] = only(watch.found(), Transfer::cast);
  EXPECT_EQ(place.phase, "backward");
  EXPECT_EQ(place.operation, "ToCopyBackward0");
}

TEST(TransferWatch, AsksForTheLayerAndEndsWithItself) {
  const at::Tensor image = at::ones({2});
  {
    TransferWatch watch(c10::kCPU, [] { return std::string("down.0"); });
    EXPECT_THROW(TransferWatch(c10::kCPU, no_layer), ConfigError);
    image.to(at::kDouble);
    EXPECT_EQ(only(watch.found(), Transfer::cast).first.layer, "down.0");
    EXPECT_EQ(only(watch.found(), Transfer::cast).first.phase, "other");
  }
  image.to(at::kDouble);
  const TransferWatch watch(c10::kCPU, no_layer);
  EXPECT_TRUE(watch.found().empty());
}

}  // namespace
}  // namespace cytra::perf
