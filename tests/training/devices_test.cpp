#include "training/devices.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/node.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using training::Devices;

Devices devices_of(const std::string& yaml) {
  return Devices::of(config::parse_yaml(yaml, "test"));
}

TEST(Devices, AreANumberOrCertainOnes) {
  EXPECT_EQ(devices_of("3").count, 3);
  for (const char* all : {"-1", "auto", "AUTO"}) EXPECT_EQ(devices_of(all).count, 0) << all;
  EXPECT_EQ(devices_of("[1, 0]").count, 2);
  EXPECT_EQ(devices_of("[1, 0]").chosen, (std::vector<int64_t>{1, 0}));
  for (const char* wrong : {"0", "-2", "two", "[]", "[-1]", "[0, 0]", "[0.5]", "{a: 1}"})
    EXPECT_THROW(devices_of(wrong), ConfigError) << wrong;
}

TEST(Devices, MustBeThere) {
  devices_of("[1, 0]").expect_there(2);
  devices_of("5").expect_there(0);
  EXPECT_EQ(message_of<ConfigError>([] { devices_of("[0, 2]").expect_there(2); }),
            "trainer.devices=[0,2]: expected GPUs from 0 to 1, which this machine has "
            "(CUDA_VISIBLE_DEVICES)");
  EXPECT_NE(message_of<ConfigError>([] {
              devices_of("[0, 1]").expect_there(0);
            }).find("the device is the CPU"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
