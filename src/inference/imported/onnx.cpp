// Part of inference/imported/imported_model.h: ONNX files, and OpenVINO's own, which OpenVINO runs
// on a CPU.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/run_config.h"
#include "inference/engines/openvino.h"
#include "inference/imported/complete.h"
#include "inference/imported/imported_model.h"
#include "inference/models/model_kinds.h"
#include "io/fingerprint.h"
#include "io/input_file.h"

namespace cytra::inference {

ImportedModel open_onnx(const std::string& path, const std::optional<OnnxEnds>& ends) {
  constexpr uint64_t kMost = uint64_t{2} << 30;  // protobuf's
  std::string bytes = io::read_input(path, kMost);
  if (bytes.starts_with("<"))
    bytes += '\0' + io::read_input(std::filesystem::path(path).replace_extension(".bin"), kMost);
  std::shared_ptr<const std::string> onnx;
  ImportedModel imported;
  try {
    OnnxFacts facts = describe_onnx(bytes, path, ends);
    for (const std::string& remark : facts.remarks) log::info("{}: {}", path, remark);
    if (facts.ends_with_sigmoid) imported.activation = "sigmoid";
    onnx =
        std::make_shared<const std::string>(std::move(facts.whole.empty() ? bytes : facts.whole));
    imported.spatial_dims = std::ssize(facts.shape) - 2;
    if (facts.shape.size() > 2) {
      imported.in_channels = std::max<int64_t>(0, facts.shape[1]);
      const std::vector<int64_t> window(facts.shape.begin() + 2, facts.shape.end());
      if (!contains(window, -1)) imported.window = window;
    }
    if (!facts.config.empty())
      imported.config = config::parse_yaml(facts.config, path + " (config)");
    imported.forward = onnx_forward(onnx);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DataError(path + ": OpenVINO: " + printable(error.what(), 300));
  }
  imported.onnx = onnx;
  imported.fingerprint = io::fingerprint(*onnx);
  imported.place = [path](c10::Device device, bool /*on_tensor_cores*/) {
    if (device.is_cpu()) return;
    throw ConfigError(path + ": it is run by OpenVINO, on a CPU; expected trainer.accelerator=cpu");
  };
  return imported;
}

static LoadedModel load_onnx(const std::string& path, const CheckpointOptions& options) {
  OnnxEnds ends{options.foreign.layout, options.foreign.output};
  if (options.config && config::load_run_config(*options.config, true).has("task.heads"))
    ends.output = OnnxEnds::kAll;
  return complete(path, open_onnx(path, ends), options);
}
static const bool is_onnx_added = add_model_kind(io::ModelKind::onnx, {load_onnx});

}  // namespace cytra::inference
