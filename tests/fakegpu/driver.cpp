// The driver, libcuda.so.1: what cuda_driver.cpp and torch's driver_api ask.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
typedef unsigned long long ptr;
static int devices() {
  const char* t = getenv("FAKEGPU_DEVICES");
  return t ? atoi(t) : 1;
}
static int capability() {
  const char* t = getenv("FAKEGPU_CAPABILITY");
  return t ? atoi(t) : 90;
}
extern "C" {
int fakegpu_reserve(void*, size_t, int);
void fakegpu_release(void*);
void fakegpu_launch(const char*, void*);
}
struct Handle {
  size_t n;
  int dev;
};
extern "C" {
int cuInit(unsigned) {
  return 0;
}
int cuDeviceGetCount(int* n) {
  *n = devices();
  return 0;
}
int cuDriverGetVersion(int* v) {
  *v = 13000;
  return 0;
}
int cuGetErrorString(int e, const char** t) {
  static char s[40];
  snprintf(s, 40, "fake driver error %d", e);
  *t = e == 2 ? "out of memory" : s;
  return 0;
}
int cuGetErrorName(int, const char** t) {
  *t = "FAKE";
  return 0;
}
int cuDeviceGet(int* d, int i) {
  *d = i;
  return i < devices() ? 0 : 101;
}
int cuDeviceGetName(char* t, int n, int) {
  snprintf(t, n, "Fake H100 80GB");
  return 0;
}
int cuDeviceGetAttribute(int* v, int a, int) {
  *v = a == 75 ? capability() / 10 : a == 76 ? capability() % 10 : 1;
  return 0;
}
int cuDeviceGetPCIBusId(char* t, int n, int d) {
  snprintf(t, n, "0000:%02x:00.0", d);
  return 0;
}
int cuCtxGetCurrent(void** c) {
  *c = (void*)1;
  return 0;
}
int cuCtxSetCurrent(void*) {
  return 0;
}
int cuCtxPushCurrent(void*) {
  return 0;
}
int cuCtxPopCurrent(void**) {
  return 0;
}
int cuDevicePrimaryCtxGetState(int, unsigned* f, int* a) {
  *f = 0;
  *a = 1;
  return 0;
}
int cuMemGetAllocationGranularity(size_t* g, const void*, int) {
  *g = 2 << 20;
  return 0;
}
int cuMemAddressReserve(ptr* p, size_t n, size_t, ptr, unsigned long long) {
  void* m =
      mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *p = (ptr)m;
  return m == MAP_FAILED ? 2 : 0;
}
int cuMemAddressFree(ptr p, size_t n) {
  munmap((void*)p, n);
  return 0;
}
int cuMemCreate(ptr* h, size_t n, const void* prop, unsigned long long) {
  int dev = 0;
  memcpy(&dev, (const char*)prop + 12, 4);
  *h = (ptr) new Handle{n, dev >= 0 && dev < 16 ? dev : 0};
  return 0;
}
int cuMemMap(ptr p, size_t n, size_t, ptr h, unsigned long long) {
  return fakegpu_reserve((void*)p, n, ((Handle*)h)->dev);
}
int cuMemSetAccess(ptr, size_t, const void*, size_t) {
  return 0;
}
int cuMemUnmap(ptr p, size_t) {
  fakegpu_release((void*)p);
  return 0;
}
int cuMemRelease(ptr) {
  return 0;
}
int cuMemExportToShareableHandle(void*, ptr, int, unsigned long long) {
  return 801;
}
int cuMemImportFromShareableHandle(ptr*, void*, int) {
  return 801;
}
int cuStreamWriteValue32() {
  return 801;
}
int cuMemsetD32Async() {
  return 0;
}
int cuGetExportTable(const void** t, const void*) {
  *t = nullptr;
  return 1;
}
int cuLaunchKernel(void*,
                   unsigned,
                   unsigned,
                   unsigned,
                   unsigned,
                   unsigned,
                   unsigned,
                   unsigned,
                   void* s,
                   void**,
                   void**) {
  fakegpu_launch("kernel compiled at run time", s);
  return 0;
}
int cuModuleGetFunction(void** m, ...) {
  *m = (void*)1;
  return 0;
}
int cuModuleLoadData(void** m, ...) {
  *m = (void*)1;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, ...) {
  *n = 2;
  return 0;
}
}
