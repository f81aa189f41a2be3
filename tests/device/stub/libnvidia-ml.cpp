// NVML as the tests want it: one GPU on the bus of the stub driver's second one. STUB_NVML=mig:
// parts of a GPU tell no utilisation.
#include <cstdlib>
#include <cstring>

namespace {
int gpu = 0;
constexpr int kNotSupported = 3, kNotFound = 6;
}  // namespace

extern "C" {
int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  *device = &gpu;
  return std::strcmp(bus, "00000000:01:00.0") == 0 ? 0 : kNotFound;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) {
  rates[0] = 87;
  rates[1] = 40;
  return std::getenv("STUB_NVML") == nullptr ? 0 : kNotSupported;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 80000000000;
  memory[1] = 70000000000;
  memory[2] = 10000000000;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 305250;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 61;
  return 0;
}
}
