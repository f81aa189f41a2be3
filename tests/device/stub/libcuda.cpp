// A driver as the tests want it: STUB_CUDA="<result of cuInit> <devices> <version>".
#include <cstdio>
#include <cstdlib>

namespace {
struct Answers {
  int init = 0, devices = 0, version = 0;
  Answers() {
    if (const char* text = std::getenv("STUB_CUDA"))
      std::sscanf(text, "%d %d %d", &init, &devices, &version);
  }
};
const Answers answers;
}  // namespace

extern "C" {
int cuInit(unsigned) {
  return answers.init;
}
int cuDeviceGetCount(int* count) {
  *count = answers.devices;
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = answers.version;
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(
      text, static_cast<unsigned>(size), "00000000:%02x:00.0", static_cast<unsigned>(device));
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "a stubborn driver";
  return 0;
}
}
