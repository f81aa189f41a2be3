// Requests of the Open Inference Protocol: the JSON up to a line "@@", then the binary data; for
// models of planes, and of volumes.
#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app/serve/http/json_body.h"
#include "app/serve/tensors/tensor_input.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace cytra;

/// A region "r" of 64 bytes that ends with the process.
struct Region {
  const std::string key = "/cytra_fuzz_" + std::to_string(::getpid());
  app::RequestBudget budget{1, 1 << 26};
  app::SharedRegions regions{budget};
  Region() {
    const int file = ::shm_open(key.c_str(), O_RDWR | O_CREAT, 0600);
    fuzz::require(file >= 0 && ::ftruncate(file, 64) == 0, "there is shared memory");
    ::close(file);
    regions.add("r", {key, 0, 64});
  }
  ~Region() { ::shm_unlink(key.c_str()); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const Region region;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find("\n@@\n"), size);
  fuzz::run<app::HttpError>([&] {
    const app::Json body = app::parse_body(text.substr(0, end), app::kMostTensor);
    if (!body.is_object()) return;  // predict_tensors() refuses it
    app::json_member_or<double>(app::parameters_of(body), "threshold", "a number", 0);
    fuzz::run<app::HttpError>([&] { app::outputs_of(body, "mask"); });
    for (const auto& own :
         {std::pair(2, 1), std::pair(2, 2), std::pair(3, 1)}) {  // dimensions, channels
      fuzz::run<app::HttpError>([&] {
        const app::InputTensor input = app::input_of(
            body, text.substr(std::min(end + 4, size)), region.regions, own.first, own.second);
        fuzz::require(
            input.bytes.size() == static_cast<std::size_t>(input.count) * input.image_bytes(),
            "the bytes are those of the shape");
        input.image(input.count - 1);
      });
    }
  });
  return 0;
}
