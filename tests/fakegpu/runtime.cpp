// A CUDA runtime without a GPU: memory is the host's, copies are made, kernels are counted and not
// run (fills are), captures are judged by the rules of CUDA's documentation. What is illegal is
// answered with CUDA's error; what was counted is appended to FAKEGPU_LOG at the end.
//   FAKEGPU_DEVICES=1   FAKEGPU_MEMORY_GB=80   FAKEGPU_CAPABILITY=90 (9.0)
//   FAKEGPU_ENDS_EARLY=1: without the destructors of libtorch, a fifth of a short program's time
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
namespace {
std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;
struct Capture {
  unsigned long long id;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool broken = false;
  int nodes = 0;
  std::vector<std::string> kernels;
};
struct Stream {
  int number;
  int device;
  unsigned flags;
  Capture* capture = nullptr;
};
struct Event {
  unsigned flags = 0;
  bool recorded = false;
  unsigned long long captured_in = 0;
  double time = 0;
};
struct GraphCopy {
  void* to;
  const void* from;
  size_t n;
};
struct Graph {
  int nodes;
  std::vector<std::string> kernels;
  std::vector<GraphCopy> copies;
};
std::map<Capture*, std::vector<GraphCopy>> copies_of;
std::map<unsigned long long, Capture*> live;
unsigned long long captures = 0;
int streams = 0;
thread_local int device = 0;
thread_local cudaError_t last = cudaSuccess;
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
std::map<const void*, std::string> names;        // host stub -> kernel
std::map<char*, std::pair<size_t, int>> blocks;  // device: >= 0; host: -1
size_t used[16] = {}, most[16] = {};
std::map<std::string, long> counts;
FILE* out = nullptr;
auto begin_time = std::chrono::steady_clock::now();
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_time).count();
}
size_t capacity() {
  static size_t c = [] {
    const char* t = getenv("FAKEGPU_MEMORY_GB");
    return (size_t)((t ? atof(t) : 80) * 1e9);
  }();
  return c;
}
int capability() {
  const char* t = getenv("FAKEGPU_CAPABILITY");
  return t ? atoi(t) : 90;
}
int devices() {
  static int n = [] {
    const char* t = getenv("FAKEGPU_DEVICES");
    return t ? atoi(t) : 1;
  }();
  return n;
}
FILE* file() {
  if (!out) {
    const char* p = getenv("FAKEGPU_LOG");
    std::string path = p ? p : "/dev/null";
    if (const char* r = getenv("RANK"); p && r) path += std::string(".rank") + r;
    out = fopen(path.c_str(), "a");
    setvbuf(out, nullptr, _IOFBF, 1 << 20);
  }
  return out;
}
std::string where() {
  void* a[40];
  int n = backtrace(a, 40);
  std::string s;
  int told = 0;
  for (int i = 2; i < n && told < 4; ++i) {
    dl_find_object object;  // dladdr() reads all symbols of libtorch: half of a program's time
    if (_dl_find_object(a[i], &object) != 0) continue;
    std::string f = object.dlfo_link_map->l_name;
    if (f.empty()) f = program_invocation_short_name;
    f = f.substr(f.rfind('/') + 1);
    if (f.find("libcytra") == std::string::npos && f.find("test_") == std::string::npos &&
        f.find("bench_") == std::string::npos)
      continue;
    Dl_info d{};
    if (!dladdr(a[i], &d)) continue;
    char buf[300];
    int st = 1;
    char* dem = d.dli_sname ? abi::__cxa_demangle(d.dli_sname, nullptr, nullptr, &st) : nullptr;
    snprintf(buf,
             sizeof buf,
             "%s+%#zx(%.120s) ",
             f.c_str(),
             (size_t)((char*)a[i] - (char*)d.dli_fbase),
             dem           ? dem
             : d.dli_sname ? d.dli_sname
                           : "?");
    free(dem);
    s += buf;
    ++told;
  }
  return s;
}
void note(const char* what) {
  counts[what]++;
}
cudaError_t fail(cudaError_t e, const char* call, const char* why) {
  last = e;
  fprintf(file(), "ILLEGAL %s: %s -> error %d; at %s\n", call, why, (int)e, where().c_str());
  fflush(out);
  counts[std::string("ILLEGAL ") + call + ": " + why]++;
  return e;
}
void warn(const char* call, const std::string& why) {
  auto& n = counts[std::string("SUSPECT ") + call + ": " + why];
  if (n++ < 5) {
    fprintf(file(), "SUSPECT %s: %s; at %s\n", call, why.c_str(), where().c_str());
    fflush(out);
  }
}
void report() {
  Lock l(mutex);
  fprintf(file(), "==== counts at %.3f s\n", now());
  for (auto& [n, c] : counts) fprintf(out, "%8ld %s\n", c, n.c_str());
  for (int d = 0; d < devices(); ++d)
    fprintf(out, "device %d: peak %.1f MB of cudaMalloc\n", d, most[d] / 1e6);
  fflush(out);
}
struct AtEnd {
  ~AtEnd() { report(); }
} at_end;
void end_now(int code, void*) {
  report();
  fflush(nullptr);
  _exit(code);
}
/// Called when libtorch is loaded: what is registered later comes first.
void end_early_if_told() {
  static const bool is_told =
      getenv("FAKEGPU_ENDS_EARLY") != nullptr && on_exit(end_now, nullptr) == 0;
  (void)is_told;
}
Stream* of(cudaStream_t s) {
  return reinterpret_cast<Stream*>(s);
}
bool is_legacy(cudaStream_t s) {
  return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread;
}
Capture* capture_of(cudaStream_t s) {
  return is_legacy(s) ? nullptr : of(s)->capture;
}
/// CUDA C Programming Guide, "Prohibited and unhandled operations",
/// cudaThreadExchangeStreamCaptureMode.
cudaError_t unsafe(const char* call) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (auto& [id, c] : live) {
    const bool own =
        c->thread == std::this_thread::get_id() && c->mode != cudaStreamCaptureModeRelaxed;
    const bool others =
        c->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    if (own || others) {
      c->broken = true;
      return fail(cudaErrorStreamCaptureUnsupported, call, "unsafe while a stream is captured");
    }
  }
  return cudaSuccess;
}
std::string short_name(const std::string& n) {
  int st = 1;
  char* d = abi::__cxa_demangle(n.c_str(), nullptr, nullptr, &st);
  std::string s = st == 0 ? d : n;
  free(d);
  if (s.rfind("void ", 0) == 0) s = s.substr(5);
  std::string r;  // keep the functor's name, drop long arguments
  if (s.size() > 170) s = s.substr(0, 170);
  return s;
}
template <class T>
void fill(void** args) {
  const int n = *static_cast<int*>(args[0]);
  const T v = *static_cast<T*>(args[1]);
  T* p = *static_cast<T**>(args[2]);
  for (int i = 0; i < n; ++i) p[i] = v;
}
/// Kernels that are done: vectorized_elementwise_kernel<k, FillFunctor<T>, std::array<char*, 1>>
void perform(const std::string& name, void** args) {
  if (name.find("vectorized_elementwise_kernel") == std::string::npos) return;
  const size_t at = name.find("FillFunctorI");
  if (at == std::string::npos) return;
  const std::string t = name.substr(at + 12, 12);
  if (t.rfind("fE", 0) == 0)
    fill<float>(args);
  else if (t.rfind("dE", 0) == 0)
    fill<double>(args);
  else if (t.rfind("iE", 0) == 0)
    fill<int>(args);
  else if (t.rfind("lE", 0) == 0)
    fill<long>(args);
  else if (t.rfind("bE", 0) == 0 || t.rfind("hE", 0) == 0)
    fill<unsigned char>(args);
  else if (t.rfind("N3c104HalfE", 0) == 0 || t.rfind("N3c108BFloat", 0) == 0)
    fill<unsigned short>(args);
}
cudaError_t launch(const void* f, dim3 g, dim3 b, void** args, size_t smem, cudaStream_t s) {
  Lock l(mutex);
  const auto n = names.find(f);
  const std::string name = n == names.end() ? "?" : n->second;
  static std::map<std::string, std::string> shorts;
  auto& sn = shorts[name];
  if (sn.empty()) sn = "kernel " + short_name(name);
  counts["launches"]++;
  note(sn.c_str());
  char text[200];
  if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z || b.x * b.y * b.z > 1024 || g.y > 65535 ||
      g.z > 65535 || b.z > 64) {
    snprintf(text,
             sizeof text,
             "grid %u %u %u block %u %u %u of %.100s",
             g.x,
             g.y,
             g.z,
             b.x,
             b.y,
             b.z,
             sn.c_str());
    return fail(cudaErrorInvalidConfiguration, "launch", text);
  }
  if (smem > 227 * 1024) return fail(cudaErrorInvalidValue, "launch", "shared memory");
  if (Capture* c = capture_of(s)) {
    c->nodes++;
    c->kernels.push_back(sn);
    return cudaSuccess;
  }
  for (auto& [id, c] : live) {
    if (thread_mode != cudaStreamCaptureModeRelaxed)
      warn("launch outside of a capture under way", sn.substr(0, 120));
    (void)c;
  }
  perform(name, args);
  return cudaSuccess;
}
}  // namespace
extern "C" {
/// A call of a library that has no kernel, or that is one, on `stream`.
void fakegpu_note(const char* what) {
  Lock l(mutex);
  note(what);
}
void fakegpu_launch(const char* what, void* stream) {
  Lock l(mutex);
  counts["launches"]++;
  counts["library launches"]++;
  note(what);
  if (Capture* c = capture_of((cudaStream_t)stream)) {
    c->nodes++;
    c->kernels.push_back(what);
  }
}
void** __cudaRegisterFatBinary(void*) {
  static void* h[1];
  return h;
}
void __cudaRegisterFatBinaryEnd(void**) {}
char __cudaInitModule(void**) {
  return 1;
}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(
    void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  Lock l(mutex);
  names[host] = name;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
struct Config {
  dim3 g, b;
  size_t s;
  cudaStream_t st;
};
static thread_local std::vector<Config> configs;
unsigned __cudaPushCallConfiguration(dim3 g, dim3 b, size_t s, struct CUstream_st* st) {
  configs.push_back({g, b, s, (cudaStream_t)st});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* g, dim3* b, size_t* s, void* st) {
  if (configs.empty()) return cudaErrorMissingConfiguration;
  auto& c = configs.back();
  *g = c.g;
  *b = c.b;
  *s = c.s;
  *(cudaStream_t*)st = c.st;
  configs.pop_back();
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* k, const void* f) {
  *k = (cudaKernel_t)f;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(
    cudaKernel_t k, dim3 g, dim3 b, void** a, size_t s, cudaStream_t st) {
  return launch((const void*)k, g, b, a, s, st);
}
cudaError_t cudaLaunchKernel(const void* f, dim3 g, dim3 b, void** a, size_t s, cudaStream_t st) {
  return launch(f, g, b, a, s, st);
}
cudaError_t cudaLaunchCooperativeKernel(
    const void* f, dim3 g, dim3 b, void** a, size_t s, cudaStream_t st) {
  return launch(f, g, b, a, s, st);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* f, void** a) {
  return launch(f, c->gridDim, c->blockDim, a, c->dynamicSmemBytes, c->stream);
}
cudaError_t cudaGetDeviceCount(int* n) {
  end_early_if_told();
  *n = devices();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) {
  *d = device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) {
  if (d < 0 || d >= devices()) {
    last = cudaErrorInvalidDevice;
    return cudaErrorInvalidDevice;
  }
  device = d;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
  *v = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) {
  *v = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const auto e = last;
  last = cudaSuccess;
  return e;
}
cudaError_t cudaPeekAtLastError() {
  return last;
}
const char* cudaGetErrorName(cudaError_t e) {
  static thread_local char t[40];
  snprintf(t, 40, "fake error %d", (int)e);
  return t;
}
const char* cudaGetErrorString(cudaError_t e) {
  switch ((int)e) {
    case 2:
      return "out of memory";
    case 900:
      return "operation not permitted when stream is capturing";
    case 901:
      return "operation failed due to a previous error during capture";
    case 905:
      return "dependency created on uncaptured work in another stream";
    case 906:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    case 907:
      return "operation not permitted on an event last recorded in a capturing stream";
    case 9:
      return "invalid configuration argument";
    case 1:
      return "invalid argument";
  }
  return cudaGetErrorName(e);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int d) {
  if (d >= devices()) return cudaErrorInvalidDevice;
  memset(p, 0, sizeof *p);
  snprintf(p->name, 256, "Fake H100 80GB");
  p->totalGlobalMem = capacity();
  p->sharedMemPerBlock = 49152;
  p->regsPerBlock = 65536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536;
  p->major = capability() / 10;
  p->minor = capability() % 10;
  p->textureAlignment = 512;
  p->multiProcessorCount = 132;
  p->canMapHostMemory = 1;
  p->concurrentKernels = 1;
  p->unifiedAddressing = 1;
  p->memoryBusWidth = 5120;
  p->l2CacheSize = 50 << 20;
  p->maxThreadsPerMultiProcessor = 2048;
  p->sharedMemPerMultiprocessor = 233472;
  p->regsPerMultiprocessor = 65536;
  p->sharedMemPerBlockOptin = 232448;
  p->asyncEngineCount = 3;
  p->pciBusID = d;
  p->cooperativeLaunch = 1;
  p->maxBlocksPerMultiProcessor = 32;
  p->accessPolicyMaxWindowSize = 128 << 20;
  p->persistingL2CacheMaxSize = 30 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int) {
  switch ((int)a) {
    case cudaDevAttrComputeCapabilityMajor:
      *v = capability() / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *v = capability() % 10;
      break;
    case cudaDevAttrMultiProcessorCount:
      *v = 132;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *v = 232448;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *v = 1024;
      break;
    case cudaDevAttrMaxGridDimX:
      *v = 2147483647;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *v = 49152;
      break;
    case cudaDevAttrWarpSize:
      *v = 32;
      break;
    default:
      *v = 1;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* t, int n, int d) {
  snprintf(t, n, "0000:%02x:00.0", d);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* c, int, int) {
  *c = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* a, int* b) {
  *a = 0;
  *b = -5;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void*) {
  memset(a, 0, sizeof *a);
  a->maxThreadsPerBlock = 1024;
  a->numRegs = 32;
  a->binaryVersion = 90;
  a->ptxVersion = 90;
  a->maxDynamicSharedSizeBytes = 232448;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void*, int, size_t) {
  *n = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* n, const void*, int, size_t, unsigned) {
  *n = 2;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, size_t n) {
  Lock l(mutex);
  note("cudaMalloc");
  if (auto e = unsafe("cudaMalloc")) return e;
  if (used[device] + n > capacity()) {
    last = cudaErrorMemoryAllocation;
    *p = nullptr;
    note("cudaMalloc OUT OF MEMORY");
    return cudaErrorMemoryAllocation;
  }
  void* m = mmap(nullptr,
                 n ? n : 1,
                 PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1,
                 0);
  if (m == MAP_FAILED) {
    last = cudaErrorMemoryAllocation;
    return last;
  }
  blocks[(char*)m] = {n, device};
  used[device] += n;
  most[device] = std::max(most[device], used[device]);
  *p = m;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  Lock l(mutex);
  note("cudaFree");
  if (auto e = unsafe("cudaFree")) return e;
  if (!p) return cudaSuccess;
  auto b = blocks.find((char*)p);
  if (b == blocks.end()) return fail(cudaErrorInvalidValue, "cudaFree", "unknown");
  used[b->second.second] -= b->second.first;
  munmap(p, b->second.first);
  blocks.erase(b);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) {
  Lock l(mutex);
  note("cudaHostAlloc");
  if (auto e = unsafe("cudaHostAlloc")) return e;
  void* m = nullptr;
  if (posix_memalign(&m, 4096, n ? n : 1)) {
    last = cudaErrorMemoryAllocation;
    return last;
  }
  blocks[(char*)m] = {n, -1};
  *p = m;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  Lock l(mutex);
  note("cudaFreeHost");
  if (auto e = unsafe("cudaFreeHost")) return e;
  blocks.erase((char*)p);
  free(p);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* p, size_t n, unsigned) {
  Lock l(mutex);
  note("cudaHostRegister");
  blocks[(char*)p] = {n, -1};
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* p) {
  Lock l(mutex);
  blocks.erase((char*)p);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) {
  Lock l(mutex);
  note("cudaMemGetInfo");
  *t = capacity();
  *f = capacity() - used[device];
  return cudaSuccess;
}
static int side(const void* p) {
  auto b = blocks.upper_bound((char*)p);
  if (b == blocks.begin()) return -2;
  --b;
  return (char*)p < b->first + b->second.first ? b->second.second : -2;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  Lock l(mutex);
  memset(a, 0, sizeof *a);
  const int s = side(p);
  a->type = s >= 0    ? cudaMemoryTypeDevice
            : s == -1 ? cudaMemoryTypeHost
                      : cudaMemoryTypeUnregistered;
  a->device = s >= 0 ? s : 0;
  a->hostPointer = s >= 0 ? nullptr : (void*)p;
  a->devicePointer = s == -2 ? nullptr : (void*)p;
  return cudaSuccess;
}
static cudaError_t copy(
    void* to, const void* from, size_t n, cudaStream_t s, bool async, const char* call) {
  const int a = side(to), b = side(from);
  const char* kind =
      a >= 0 && b >= 0 ? (a == b ? "copy device to device" : "copy between devices")
      : a >= 0         ? (b == -1 ? "copy host(pinned) to device" : "copy host(PAGEABLE) to device")
      : b >= 0         ? (a == -1 ? "copy device to host(pinned)" : "copy device to host(PAGEABLE)")
                       : "copy host to host";
  note(kind);
  if (strstr(kind, "PAGEABLE")) counts[std::string(kind) + " at " + where()]++;
  counts[std::string(kind) + " bytes"] += (long)n;
  if (async) counts["launches (copies)"]++;
  if (a == -2 && b >= 0) counts["WAITS: device to pageable host"]++;
  if (Capture* c = capture_of(s)) {
    if (!async) {
      c->broken = true;
      return fail(cudaErrorStreamCaptureUnsupported, call, "synchronous copy into a capture");
    }
    if (a == -2 || b == -2) {
      c->broken = true;
      return fail(cudaErrorStreamCaptureUnsupported, call, "copy of pageable memory in a capture");
    }
    c->nodes++;
    c->kernels.push_back(kind);
    copies_of[c].push_back({to, from, n});
    return cudaSuccess;
  }
  // Numbers that the host reads are those of kernels that were not run: 0, and "yes"; but what it
  // has sent itself just now, as processes that agree on something do.
  static std::map<const void*, long> sent;  // where, and how many launches there had been
  if (a >= 0 && b < 0) sent[to] = counts["launches"];
  const auto own = sent.find(from);
  const bool is_own = own != sent.end() && counts["launches"] - own->second <= 2;
  if (b >= 0 && a < 0 && n <= 64 && !is_own) {
    memset(to, n == 1 ? 1 : 0, n);
    return cudaSuccess;
  }
  memmove(to, from, n);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind, cudaStream_t s) {
  Lock l(mutex);
  return copy(to, from, n, s, true, "cudaMemcpyAsync");
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind) {
  Lock l(mutex);
  note("cudaMemcpy (waits)");
  if (auto e = unsafe("cudaMemcpy")) return e;
  return copy(to, from, n, nullptr, false, "cudaMemcpy");
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, cudaStream_t s) {
  Lock l(mutex);
  return copy(to, from, n, s, true, "cudaMemcpyPeerAsync");
}
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int v, size_t n) {
  memset(p, v, n);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t s) {
  Lock l(mutex);
  note("memset");
  counts["launches"]++;
  if (Capture* c = capture_of(s)) {
    c->nodes++;
    return cudaSuccess;
  }
  memset(p, v, n);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned f, int) {
  Lock l(mutex);
  note("cudaStreamCreate");
  if (auto e = unsafe("cudaStreamCreateWithPriority")) return e;
  *s = (cudaStream_t) new Stream{++streams, device, f};
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  Lock l(mutex);
  note("cudaStreamQuery");
  if (Capture* c = capture_of(s)) {
    c->broken = true;
    return fail(cudaErrorStreamCaptureUnsupported, "cudaStreamQuery", "of a captured stream");
  }
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  Lock l(mutex);
  note("WAIT cudaStreamSynchronize");
  counts["wait at " + where()]++;
  if (Capture* c = capture_of(s)) {
    c->broken = true;
    return fail(cudaErrorStreamCaptureUnsupported, "cudaStreamSynchronize", "of a captured stream");
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  Lock l(mutex);
  note("WAIT cudaDeviceSynchronize");
  counts["wait at " + where()]++;
  if (auto e = unsafe("cudaDeviceSynchronize")) return e;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  Lock l(mutex);
  note("cudaStreamWaitEvent");
  Event* ev = (Event*)e;
  Capture* c = capture_of(s);
  if (ev->captured_in) {
    auto k = live.find(ev->captured_in);
    if (k == live.end())
      return fail((cudaError_t)907, "cudaStreamWaitEvent", "an event of an ended capture");
    if (is_legacy(s))
      return fail((cudaError_t)906, "cudaStreamWaitEvent", "legacy stream would join a capture");
    if (!c) {
      of(s)->capture = k->second;
      warn("cudaStreamWaitEvent", "another stream joins the capture");
    }
    return cudaSuccess;
  }
  if (c && ev->recorded) {
    c->broken = true;
    return fail((cudaError_t)905,
                "cudaStreamWaitEvent",
                "a captured stream waits for work outside of the capture");
  }
  return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void* u, unsigned) {
  f(s, cudaSuccess, u);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned f) {
  note("cudaEventCreate");
  *e = (cudaEvent_t) new Event{f};
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) {
  return cudaEventCreateWithFlags(e, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete (Event*)e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  Lock l(mutex);
  note("cudaEventRecord");
  Event* ev = (Event*)e;
  ev->recorded = true;
  ev->captured_in = 0;
  ev->time = now();
  if (Capture* c = capture_of(s)) ev->captured_in = c->id;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) {
  return cudaEventRecord(e, s);
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  Lock l(mutex);
  note("cudaEventQuery");
  if (((Event*)e)->captured_in)
    return fail((cudaError_t)907, "cudaEventQuery", "of a captured event");
  if (auto r = unsafe("cudaEventQuery")) return r;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  Lock l(mutex);
  note("WAIT cudaEventSynchronize");
  if (((Event*)e)->captured_in)
    return fail((cudaError_t)907, "cudaEventSynchronize", "of a captured event");
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  *ms = (float)(1e3 * (((Event*)b)->time - ((Event*)a)->time));
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* m) {
  std::swap(*m, thread_mode);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode m) {
  Lock l(mutex);
  note("cudaStreamBeginCapture");
  if (is_legacy(s))
    return fail(cudaErrorStreamCaptureUnsupported, "cudaStreamBeginCapture", "legacy stream");
  if (of(s)->capture) return fail(cudaErrorIllegalState, "cudaStreamBeginCapture", "twice");
  auto* c = new Capture{++captures, m, std::this_thread::get_id()};
  of(s)->capture = c;
  live[c->id] = c;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) {
  Lock l(mutex);
  note("cudaStreamEndCapture");
  Capture* c = capture_of(s);
  *g = nullptr;
  if (!c) return fail(cudaErrorIllegalState, "cudaStreamEndCapture", "no capture");
  if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
    return fail((cudaError_t)908, "cudaStreamEndCapture", "by another thread");
  of(s)->capture = nullptr;
  live.erase(c->id);
  if (c->broken) return fail(cudaErrorStreamCaptureInvalidated, "cudaStreamEndCapture", "broken");
  *g = (cudaGraph_t) new Graph{c->nodes, c->kernels, copies_of[c]};
  fprintf(file(), "GRAPH captured: %d nodes\n", c->nodes);
  counts["graph nodes captured"] += c->nodes;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* st) {
  Capture* c = capture_of(s);
  *st = !c          ? cudaStreamCaptureStatusNone
        : c->broken ? cudaStreamCaptureStatusInvalidated
                    : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s,
                                     cudaStreamCaptureStatus* st,
                                     unsigned long long* id,
                                     cudaGraph_t* g,
                                     const cudaGraphNode_t** d,
                                     const cudaGraphEdgeData** ed,
                                     size_t* n) {
  Capture* c = capture_of(s);
  cudaStreamIsCapturing(s, st);
  if (c && id) *id = c->id;
  if (g) *g = nullptr;
  if (d) *d = nullptr;
  if (ed) *ed = nullptr;
  if (n) *n = 0;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
  note("cudaGraphInstantiate");
  *e = (cudaGraphExec_t) new Graph(*(Graph*)g);
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t*, size_t* n) {
  *n = ((Graph*)g)->nodes;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t) {
  Lock l(mutex);
  note("cudaGraphLaunch");
  for (auto& c : ((Graph*)e)->copies) memmove(c.to, c.from, c.n);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete (Graph*)g;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  note("cudaGraphExecDestroy");
  return cudaSuccess;
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t,
                                         cudaGraphNode_t*,
                                         cudaGraphEdgeData*,
                                         size_t* n) {
  if (n) *n = 0;
  return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void** p, const void*) {
  static char room[1 << 20];
  *p = room;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(
    const char* name, void** f, unsigned, unsigned long long, cudaDriverEntryPointQueryResult* r) {
  static void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  *f = cuda ? dlsym(cuda, name) : nullptr;
  if (r) *r = *f ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  if (!*f) fprintf(file(), "driver entry %s: none\n", name);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) {
  return cudaMalloc(p, n);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t) {
  return cudaFree(p);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* p, int) {
  *p = (cudaMemPool_t)1;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void*) {
  return cudaErrorNotSupported;
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  return cudaErrorNotSupported;
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  return cudaErrorNotSupported;
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  return cudaErrorNotSupported;
}
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return cudaErrorNotSupported;
}
// for libcuda's expandable segments
int fakegpu_reserve(void* p, size_t n, int dev) {
  Lock l(mutex);
  if (used[dev] + n > capacity()) return 2;
  blocks[(char*)p] = {n, dev};
  used[dev] += n;
  most[dev] = std::max(most[dev], used[dev]);
  note("cuMemMap");
  return 0;
}
void fakegpu_release(void* p) {
  Lock l(mutex);
  auto b = blocks.find((char*)p);
  if (b != blocks.end()) {
    used[b->second.second] -= b->second.first;
    blocks.erase(b);
  }
  note("cuMemUnmap");
}
}
