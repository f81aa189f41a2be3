// A model's folder of nnU-Net: plans.json, a line "@@", dataset.json.
#include <algorithm>

#include "base/log.h"
#include "inference/imported/nnunet.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json.h"

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
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find("\n@@\n"), size);
  const bool are_volumes = text.find("3d_fullres") < end;
  const std::string model = folder.path + (are_volumes ? "/a__b__3d_fullres" : "/a__b__2d");
  std::filesystem::create_directories(model);
  fuzz::put(model + "/plans.json", text.substr(0, end));
  fuzz::put(model + "/dataset.json", text.substr(std::min(end + 4, size)));
  fuzz::run<Error>([&] {
    const inference::NnunetModelFile file =
        inference::read_nnunet(model + "/fold_0/checkpoint_final.pth");
    const config::Node again = config::parse_yaml(config::to_yaml(file.config), "again.yaml");
    fuzz::require(config::equal(file.config, again), "a round trip changes nothing");
  });
  return 0;
}
