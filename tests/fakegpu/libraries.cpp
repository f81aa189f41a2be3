// What of cuBLAS, cuDNN and NCCL has to answer; the rest of them, and the other libraries, are made
// by make.py.
#include <cstdlib>
#include <cstring>

extern "C" {
void fakegpu_launch(const char* what, void* stream);
void fakegpu_note(const char* what);
struct H {
  void* stream;
  int mode;
  int pointer;
};
int cublasCreate_v2(void** h) {
  *h = calloc(1, sizeof(H));
  return 0;
}
int cublasDestroy_v2(void* h) {
  free(h);
  return 0;
}
int cublasSetStream_v2(void* h, void* s) {
  ((H*)h)->stream = s;
  return 0;
}
int cublasGetMathMode(void* h, int* m) {
  *m = ((H*)h)->mode;
  return 0;
}
int cublasSetMathMode(void* h, int m) {
  ((H*)h)->mode = m;
  return 0;
}
int cublasGetPointerMode_v2(void* h, int* m) {
  *m = ((H*)h)->pointer;
  return 0;
}
int cublasSetPointerMode_v2(void* h, int m) {
  ((H*)h)->pointer = m;
  return 0;
}
int cublasSetWorkspace_v2(void*, void*, size_t) {
  return 0;
}

int cublasLtMatmulAlgoGetHeuristic(
    void*, void*, void*, void*, void*, void*, void*, int n, void* r, int* c) {
  memset(r, 0, 128);
  *c = 1;
  return 0;
}
int cublasLtMatmulDescCreate(void** d, int, int) {
  *d = calloc(1, 256);
  return 0;
}
int cublasLtMatmulDescDestroy(void* d) {
  free(d);
  return 0;
}
int cublasLtMatrixLayoutCreate(void** d, int, unsigned long, unsigned long, long) {
  *d = calloc(1, 256);
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* d) {
  free(d);
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** d) {
  *d = calloc(1, 256);
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* d) {
  free(d);
  return 0;
}
size_t cublasLtGetVersion() {
  return 130100;
}
int cublasLtMatmul(void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   void*,
                   size_t,
                   void* stream) {
  fakegpu_launch("library cublasLtMatmul", stream);
  return 0;
}

struct D {
  int kind;
  int ints[64];
  int n;
  long extra;
};
int cudnnCreate(void** h) {
  *h = calloc(1, 64);
  return 0;
}
int cudnnSetStream(void* h, void* s) {
  *(void**)h = s;
  return 0;
}
int cudnnGetStream(void* h, void** s) {
  *s = *(void**)h;
  return 0;
}
size_t cudnnGetVersion() {
  return 91900;
}
size_t cudnnGetCudartVersion() {
  return 13000;
}
const char* cudnnGetErrorString(int) {
  return "fake cudnn";
}
void cudnnGetLastErrorString(char* m, size_t n) {
  if (n) m[0] = 0;
}
#define CREATE(name)           \
  int name(void** d) {         \
    *d = calloc(1, sizeof(D)); \
    return 0;                  \
  }
CREATE(cudnnCreateTensorDescriptor)
CREATE(cudnnCreateFilterDescriptor)
CREATE(cudnnCreateConvolutionDescriptor)
CREATE(cudnnCreateActivationDescriptor)
CREATE(cudnnCreatePoolingDescriptor)
CREATE(cudnnCreateDropoutDescriptor)
CREATE(cudnnCreateRNNDescriptor)
CREATE(cudnnCreateRNNDataDescriptor)
CREATE(cudnnCreateCTCLossDescriptor)
CREATE(cudnnCreateSpatialTransformerDescriptor)
// What cuDNN measured of an algorithm.
struct Perf {
  int algo;
  int status;
  float time;
  size_t memory;
  int determinism;
  int mathType;
  int reserved[3];
};
static void perf(void* p, int algo) {
  memset(p, 0, sizeof(Perf));
  Perf* q = (Perf*)p;
  q->algo = algo;
  q->time = 1;
  q->memory = 8 << 20;
  q->determinism = 1;
  q->mathType = 3;
}
// What is asked of a convolution ahead of it, in each of its directions.
#define CONVOLUTION(direction)                                           \
  int cudnnGetConvolution##direction##Algorithm_v7(                      \
      void*, void*, void*, void*, void*, int, int* count, void* found) { \
    *count = 1;                                                          \
    perf(found, 1);                                                      \
    return 0;                                                            \
  }                                                                      \
  int cudnnFindConvolution##direction##AlgorithmEx(void*,                \
                                                   void*,                \
                                                   void*,                \
                                                   void*,                \
                                                   void*,                \
                                                   void*,                \
                                                   void*,                \
                                                   void*,                \
                                                   int,                  \
                                                   int* count,           \
                                                   void* found,          \
                                                   void*,                \
                                                   size_t) {             \
    *count = 1;                                                          \
    perf(found, 1);                                                      \
    fakegpu_note("library cudnnFind (benchmark)");                       \
    return 0;                                                            \
  }                                                                      \
  int cudnnGetConvolution##direction##WorkspaceSize(                     \
      void*, void*, void*, void*, void*, int, size_t* bytes) {           \
    *bytes = 8 << 20;                                                    \
    return 0;                                                            \
  }
CONVOLUTION(Forward)
CONVOLUTION(BackwardData)
CONVOLUTION(BackwardFilter)

// A function of cuDNN whose first argument is the handle, which knows the stream.
#define LAUNCHES(name)                            \
  int name(void* h, ...) {                        \
    fakegpu_launch("library " #name, *(void**)h); \
    return 0;                                     \
  }
LAUNCHES(cudnnConvolutionForward)
LAUNCHES(cudnnConvolutionBackwardData)
LAUNCHES(cudnnConvolutionBackwardFilter)
LAUNCHES(cudnnConvolutionBiasActivationForward)
LAUNCHES(cudnnBatchNormalizationForwardTrainingEx)
LAUNCHES(cudnnBatchNormalizationBackwardEx)
LAUNCHES(cudnnBatchNormalizationForwardInference)
int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    void*, int, int, void*, void*, void*, void*, void*, size_t* s) {
  *s = 1024;
  return 0;
}
int cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    void*, int, int, void*, void*, void*, void*, void*, void*, void*, size_t* s) {
  *s = 1024;
  return 0;
}
int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*, size_t* s) {
  *s = 1024;
  return 0;
}
int cudnnSetTensorNdDescriptor(void* d, int, int n, const int* a, const int* b) {
  D* q = (D*)d;
  q->n = n;
  memcpy(q->ints, a, 4 * n);
  memcpy(q->ints + 16, b, 4 * n);
  return 0;
}
int cudnnSetFilterNdDescriptor(void* d, int type, int fmt, int n, const int* a) {
  fakegpu_note(fmt == 1 ? "filters, channels last" : "filters, channels first");
  D* q = (D*)d;
  q->n = n;
  q->kind = type;
  q->ints[40] = fmt;
  memcpy(q->ints, a, 4 * n);
  return 0;
}

int ncclGetVersion(int* v) {
  *v = 22809;
  return 0;
}
const char* ncclGetErrorString(int) {
  return "fake nccl";
}
const char* ncclGetLastError(void*) {
  return "";
}
int ncclGetUniqueId(char* id) {
  memset(id, 1, 128);
  return 0;
}
int ncclCommInitRank(void** c, int n, char*, int r) {
  *c = calloc(1, 64);
  return 0;
}
int ncclCommInitRankConfig(void** c, int n, ...) {
  *c = calloc(1, 64);
  return 0;
}
int ncclCommInitRankScalable(void** c, int n, ...) {
  *c = calloc(1, 64);
  return 0;
}
int ncclCommGetAsyncError(void*, int* e) {
  *e = 0;
  return 0;
}
int ncclGroupStart() {
  return 0;
}
int ncclGroupEnd() {
  return 0;
}
int ncclGroupSimulateEnd(void*) {
  return 0;
}
int ncclAllReduce(const void* a, void* b, size_t n, int, int, void*, void* s) {
  fakegpu_launch("library ncclAllReduce", s);
  return 0;
}
int ncclBroadcast(const void* a, void* b, size_t n, int, int, void*, void* s) {
  fakegpu_launch("library ncclBroadcast", s);
  return 0;
}
int ncclBcast(void* b, size_t n, int, int, void*, void* s) {
  fakegpu_launch("library ncclBcast", s);
  return 0;
}
}
