#include "pipelines/detection/detector.h"

#include "inference/imported/torchscript.h"
#include "inference/trained_model.h"
#include "pipelines/detection/kinds.h"

namespace cytra::pipelines {

std::unique_ptr<Detector> load_detector(const std::string& path,
                                        c10::Device device,
                                        const DetectorOptions& options) {
  if (inference::is_torchscript(path)) {
    expect_detector_options(options);
    return load_scripted_detector(path, device, options);
  }
  return make_detector(inference::load_models({{path}, {}}).front(), device, options);
}

}  // namespace cytra::pipelines
