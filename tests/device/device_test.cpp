// How a GPU is found, with a driver and CUDA libraries that are stubs: each case is a process of
// its own, since torch looks once. The stub of the CUDA libraries lies beside a torch's, where the
// real ones lie, and nothing else tells where that is.
#include "device/device.h"

#include <cstdlib>

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "device/cuda_driver.h"
#include "device/error.h"

namespace cytra::device {
namespace {

/// Its name is what the dynamic linker finds once it is loaded by path.
void load(const char* library) {
  if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::_Exit(3);
  }
}

/// Tells on stderr what is chosen, and ends the process.
[[noreturn]] void choose(const char* accelerator) {
  log::set_level(log::Level::debug);
  try {
    std::fprintf(stderr, "device %s\n", choose_device(accelerator).str().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error %d: %s\n", exit_code(error), error.what());
  }
  std::_Exit(0);
}

[[noreturn]] void choose_with(const char* driver, const char* accelerator) {
  setenv("STUB_CUDA", driver, 1);
  load(CYTRA_STUB_DRIVER);
  choose(accelerator);
}

class Detection : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr)
      GTEST_SKIP() << "a driver is loaded";
    // The cases' processes start anew, with this torch.
    setenv("LD_PRELOAD", CYTRA_STUB_TORCH "/libtorch_cpu.so", 1);
    unsetenv("LD_LIBRARY_PATH");
  }
  void TearDown() override { unsetenv("LD_PRELOAD"); }
};
constexpr auto done = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; };

TEST_F(Detection, TheDriverAloneTellsOfGpus) {
  EXPECT_EXIT(choose_with("0 2 13000", "auto"), done, "device cuda:0");
  EXPECT_EXIT(choose_with("0 2 13010", "gpu"), done, "device cuda:0");
}

TEST_F(Detection, ADriverWithoutGpusIsNoNews) {
  EXPECT_EXIT(choose_with("100 0 13000", "auto"), done, "device cpu");
  EXPECT_EXIT(
      choose_with("100 0 13000", "gpu"), done, "error 2: .*the NVIDIA driver shows no GPU; use");
  EXPECT_EXIT(
      {
        setenv("CUDA_VISIBLE_DEVICES", "7", 1);
        choose_with("0 0 13000", "gpu");
      },
      done,
      "shows no GPU .CUDA_VISIBLE_DEVICES=7.");
}

TEST_F(Detection, ADriverThatDoesNotStartIsNamed) {
  EXPECT_EXIT(choose_with("803 1 13000", "auto"),
              done,
              "using the CPU: the NVIDIA driver does not start: a stubborn driver .error 803.");
}

TEST_F(Detection, ADriverTooOldIsNamedWithTheOneNeeded) {
  EXPECT_EXIT(choose_with("0 1 12040", "gpu"),
              done,
              "error 2: .*too old: it knows CUDA 12.4, LibTorch's libraries are of CUDA 13.0 and "
              "need driver 580 or newer");
}

TEST_F(Detection, ALibraryWhereTheUserStandsIsNotTaken) {
  EXPECT_EXIT(
      {
        const std::string driver = CYTRA_STUB_DRIVER;
        if (chdir(driver.substr(0, driver.rfind('/')).c_str()) != 0) std::_Exit(4);
        setenv("STUB_CUDA", "0 1 13000", 1);
        choose("gpu");
      },
      done,
      "error 2: .*no NVIDIA driver is installed");
}

TEST_F(Detection, AQuestionBeforeTheLibrariesIsToldFromAMissingDriver) {
  EXPECT_EXIT(
      {
        at::globalContext().hasCUDA();
        choose_with("0 1 13000", "gpu");
      },
      done,
      "asked about CUDA before its CUDA libraries were loaded.*choose_device");
}

TEST(CudaDriver, AnyDriverOfTheSameMajorVersionDoes) {
  CudaDriver driver;
  driver.cuda = 13000;
  EXPECT_EQ(too_old(driver, 13020), "");
  driver.cuda = 12080;
  EXPECT_NE(too_old(driver, 13000), "");
  EXPECT_EQ(too_old(driver, 12090), "");
}

TEST(DeviceError, OutOfMemoryHasManyForms) {
  for (const char* text :
       {"CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in ...",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "GET was unable to find an engine to execute this computation",
        "FIND was unable to find an engine to execute this computation",
        "NCCL error: unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'",
        "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory",
        "could not create a primitive"})
    EXPECT_TRUE(is_out_of_memory(std::runtime_error(text))) << text;
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  for (const char* text : {"CUDA error: an illegal memory access was encountered",
                           "CUDA error: device-side assert triggered",
                           "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED",
                           "could not create a primitive descriptor for the convolution forward"})
    EXPECT_FALSE(is_out_of_memory(std::runtime_error(text))) << text;
}

TEST(DeviceError, SaysWhatAUserCanMend) {
  EXPECT_THROW(
      throw_device_error("CUDA error: device-side assert triggered\nCUDA kernel errors ..."),
      DataError);
  EXPECT_THROW(
      throw_device_error("CUDA error: no kernel image is available for execution on the device"),
      ConfigError);
  EXPECT_THROW(throw_device_error("CUDA error: uncorrectable ECC error encountered"), IoError);
  EXPECT_NO_THROW(throw_device_error("CUDA error: an illegal memory access was encountered"));
  try {
    throw_device_error(
        "nll_loss2d_forward_out_cuda_template does not have a deterministic implementation, but "
        "you set 'torch.use_deterministic_algorithms(True)'. ...");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "trainer.deterministic=true: nll_loss2d_forward_out_cuda_template has no "
        "deterministic form on this device; trainer.deterministic=warn uses it all the same");
  }
}

TEST(Performance, AllChoicesOfTf32LeaveOneAnswer) {
  at::Context& context = at::globalContext();
  for (const char* precision : {"highest", "high", "medium"}) {
    for (const auto tf32 : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
      PerformanceOptions options;
      options.matmul_precision = precision;
      options.enable_tf32 = tf32;
      apply(options, c10::Device(c10::kCUDA, 0));
      EXPECT_NO_THROW(context.float32MatmulPrecision()) << precision;
      if (tf32 == true || std::string(precision) != "highest") {
        EXPECT_TRUE(context.allowTF32CuBLAS()) << precision;
      }
    }
  }
  apply({}, c10::kCPU);
}

TEST(Performance, TheAllocatorTakesNoSplitBelow20) {
  PerformanceOptions options;
  options.max_split_size_mb = 19;
  EXPECT_THROW(prepare(options), ConfigError);
  options.max_split_size_mb = 20;
  EXPECT_NO_THROW(prepare(options));
  EXPECT_STREQ(getenv("PYTORCH_ALLOC_CONF"), "max_split_size_mb:20");
  unsetenv("PYTORCH_ALLOC_CONF");
}

TEST(Performance, TheUsersAllocatorSettingsWin) {
  PerformanceOptions options;
  options.expandable_segments = true;
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    unsetenv("PYTORCH_ALLOC_CONF");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    setenv(name, "backend:native", 1);
    prepare(options);
    EXPECT_STREQ(getenv(name), "backend:native");
    const bool is_new = std::string(name) == "PYTORCH_ALLOC_CONF";
    EXPECT_EQ(getenv(is_new ? "PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_ALLOC_CONF"), nullptr);
    unsetenv(name);
  }
  prepare(options);
  EXPECT_STREQ(getenv("PYTORCH_ALLOC_CONF"), "expandable_segments:True");
  unsetenv("PYTORCH_ALLOC_CONF");
  options.memory_fraction = 0.5;
  prepare(options);
  EXPECT_STREQ(getenv("PYTORCH_ALLOC_CONF"),
               "expandable_segments:True,per_process_memory_fraction:0.5");
  unsetenv("PYTORCH_ALLOC_CONF");
}

}  // namespace
}  // namespace cytra::device
