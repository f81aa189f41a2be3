// Networks of torch.export: the files of an archive as JSON, weights as their number of bytes; the
// archive is made, loaded, and run on an image.
#include <ATen/ATen.h>

#include "base/log.h"
#include "config/registry.h"
#include "device/error.h"
#include "nn/model.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json.h"
#include "tests/fuzz/zip.h"

// A tensor that is too large for what there is to fuzz with is an error as memory that ran out.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=64";
}

extern "C" std::size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                               std::size_t size,
                                               std::size_t most,
                                               unsigned seed) {
  return cytra::fuzz::mutate_text(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace cytra;
  static const fuzz::Folder folder;
  log::set_level(log::Level::error);
  const fuzz::Json parts = fuzz::Json::parse(data, data + size, nullptr, false);
  if (!parts.is_object()) return -1;
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [name, content] : parts.items()) {
    const bool is_number = content.is_number_unsigned();  // of bytes of weights
    files.emplace_back(name,
                       is_number
                           ? std::string(content.get<uint64_t>() % 65536, '\x3c')
                           : content.dump(-1, ' ', false, fuzz::Json::error_handler_t::replace));
  }
  const std::string path = folder.path + "/net.pt2";
  fuzz::put(path, fuzz::zip_of(files));
  config::Node options = config::Node::make_map();
  options.set("_target_", config::Node::make_string("ExportedProgram"));
  options.set("file", config::Node::make_string(path));
  fuzz::run<Error>([&] {
    try {
      const at::NoGradGuard no_grad;
      const auto model = make<nn::Model>(options);
      if (model->in_channels() < 1 || model->in_channels() > 64) return;
      std::vector<int64_t> sides{2, model->in_channels()};
      sides.resize(static_cast<std::size_t>(model->spatial_dims() + 2), 16);
      for (const bool trains : {false, true}) {
        model->train(trains);
        model->all(at::ones(sides));
      }
    } catch (const std::exception& error) {
      if (!device::is_out_of_memory(error)) throw;
    }
  });
  return 0;
}
