#include "pipelines/detection/detector.h"

#include <c10/core/InferenceMode.h>

#include "inference/imported/imported_model.h"
#include "inference/models/trained_model.h"
#include "pipelines/detection/kinds.h"

namespace cytra::pipelines {

std::unique_ptr<Detector> load_detector(const std::string& path,
                                        c10::Device device,
                                        const DetectorOptions& options) {
  const c10::InferenceMode no_inference_mode(false);  // an engine may trace it
  if (inference::is_torchscript(path)) {
    options.engine.say_is_unread(path);
    expect_detector_options(options);
    return load_scripted_detector(path, device, options);
  }
  return make_detector(inference::load_models({{path}, {}}).front(), device, options);
}

}  // namespace cytra::pipelines
