// Part of inference/imported/imported_model.h: what AOTInductor
// (torch._inductor.aoti_compile_and_package) wrote, machine code for one processor and some shapes.
// It does not look at the shapes that it gets, so we do.
#include <algorithm>
#include <regex>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "base/strings.h"
#include "config/json.h"
#include "device/error.h"
#include "inference/imported/complete.h"
#include "inference/imported/imported_model.h"
#include "inference/models/model_kinds.h"
#include "io/fingerprint.h"
#include "io/weights/archive.h"
#include "nn/exported/message.h"

namespace cytra::inference {
namespace {

/// The allowed sizes of one dimension of the input.
struct Extent {
  int64_t least = 1, most = INT64_MAX;
  bool is_fixed() const { return least == most; }
};

/// The extents of the first input, by the checks in the generated source. Source:
/// codegen_input_size_asserts of torch/_inductor/codegen/cpp_wrapper_cpu.py, PyTorch 2.11.
std::vector<Extent> read_extents(const std::string& path, const std::string& source) {
  const std::string begin = "static void check_input_0(";
  const std::size_t at = source.find(begin);
  if (at == std::string::npos) {
    throw DataError(path +
                    ": it does not say which shapes it takes; compile it again with PyTorch "
                    "2.11");
  }
  if (source.find("static void check_input_1(") != std::string::npos)
    throw DataError(path + ": it takes several inputs, expected one: the image");
  const std::string checks = source.substr(at, source.find("AOTI_NOINLINE", at) - at);
  std::vector<Extent> extents;
  const std::regex check(R"(if \((?:(\d+) != )?\w+_size\[(\d)\](?: ([<>]) (\d+))?\))");
  for (std::sregex_iterator one(checks.begin(), checks.end(), check), end; one != end; ++one) {
    const std::smatch& match = *one;
    extents.resize(std::max<std::size_t>(extents.size(), std::stoul(match[2]) + 1));
    Extent& extent = extents[std::stoul(match[2])];
    if (match[1].matched) extent.least = extent.most = std::stoll(match[1]);
    if (match[3] == "<") extent.least = std::stoll(match[4]);
    if (match[3] == ">") extent.most = std::stoll(match[4]);
  }
  if (extents.size() == 4 || extents.size() == 5) return extents;
  throw DataError("{}: its input has {} dimensions that are known, expected 4 or 5: (N,C,[D,]H,W)",
                  path,
                  extents.size());
}

/// Checks the processor. Throws: DataError for a processor that lacks what the code was compiled
/// for.
void expect_processor(const std::string& path, const std::string& wanted) {
  const auto has = [&](const char* name) { return wanted.find(name) != std::string::npos; };
#if defined(__x86_64__)
  const bool fits = (!has("AVX512") || __builtin_cpu_supports("avx512f") != 0) &&
                    (!has("AVX2") || __builtin_cpu_supports("avx2") != 0);
#else
  const bool fits = !has("AVX");
#endif
  if (!fits)
    throw DataError("{}: compiled for a processor with {}; compile it on one like this",
                    path,
                    printable(wanted));
}

/// Loads the libtorch.so that compiled models name, so that the loader of shared libraries finds
/// it.
void provide_libtorch(const std::string& device) {
  static SharedLibrary empty(path_beside(&open_aoti, "libcytra_torch_name.so"),
                             SharedLibrary::Symbols::local);
  if (device == "cpu" && empty.is_loaded()) return;
  static SharedLibrary whole(path_beside(&at::get_num_threads, "libtorch.so"),
                             SharedLibrary::Symbols::global);
}

/// Runs the model with inputs of the extents that it takes.
class Compiled {
 public:
  /// Loads the model. Throws: what torch throws when it can't be loaded.
  Compiled(std::string path,
           std::vector<Extent> extents,
           std::string device,
           const std::string& name)
      : path_(std::move(path)),
        extents_(std::move(extents)),
        device_(std::move(device)),
        loader_(path_, name) {}

  std::vector<at::Tensor> run(const at::Tensor& windows) {
    expect_shape(windows);
    const Extent& batch = extents_[0];
    const int64_t count = windows.size(0);
    std::vector<std::vector<at::Tensor>> parts;
    for (int64_t begin = 0; begin < count; begin += batch.most) {
      at::Tensor part = windows.slice(0, begin, std::min(count, begin + batch.most));
      const int64_t own = part.size(0);
      if (own < batch.least) {  // the last window again
        const at::Tensor last = part.slice(0, own - 1);
        std::vector<int64_t> shape = last.sizes().vec();
        shape[0] = batch.least - own;
        part = at::cat({part, last.expand(shape)});
      }
      parts.push_back(loader_.run({part.contiguous()}));
      for (at::Tensor& output : parts.back()) output = output.slice(0, 0, own);
      if (begin > count - batch.most) break;  // before it overflows
    }
    if (parts.size() == 1) return std::move(parts[0]);
    std::vector<at::Tensor> outputs;
    for (std::size_t i = 0; i < parts[0].size(); ++i) {
      outputs.push_back(at::cat(mapped(parts, [&](const auto& part) { return part[i]; })));
    }
    return outputs;
  }

  void expect_device(c10::Device device) const {
    if (c10::DeviceTypeName(device.type(), true) == device_) return;
    throw ConfigError(
        "{}: compiled for {}, which trainer.accelerator must be, too", path_, printable(device_));
  }

 private:
  void expect_shape(const at::Tensor& windows) const {
    bool fits = windows.dim() == std::ssize(extents_);
    std::vector<std::string> taken;
    for (std::size_t d = 0; d < extents_.size(); ++d) {
      const Extent& extent = extents_[d];
      taken.push_back(extent.is_fixed() ? fmt::to_string(extent.least)
                      : extent.most == INT64_MAX
                          ? fmt::format("{}..", extent.least)
                          : fmt::format("{}..{}", extent.least, extent.most));
      const int64_t size = fits ? windows.size(static_cast<int64_t>(d)) : 0;
      fits = fits && (d == 0 || (size >= extent.least && size <= extent.most));
    }
    if (fits) return;
    throw DataError("{}: it takes ({}), got ({}): set inference_args.roi_size",
                    path_,
                    fmt::join(taken, ","),
                    fmt::join(windows.sizes(), ","));
  }

  std::string path_;
  std::vector<Extent> extents_;
  std::string device_;
  torch::inductor::AOTIModelPackageLoader loader_;
};

}  // namespace

ImportedModel open_aoti(const std::string& path) {
  const auto sources = io::unpack(path, ".wrapper.cpp"), facts = io::unpack(path, "_metadata.json");
  if (sources.size() != 1 || facts.empty())
    throw DataError("{}: {} compiled models in it, expected one", path, sources.size());
  const auto& [file, source] = *sources.begin();
  const std::vector<Extent> extents = read_extents(path, source);
  const config::Node known = config::parse_json(facts.begin()->second, path);
  expect_processor(path, known.get<std::string>("AOTI_CPU_ISA", ""));

  ImportedModel imported;
  const std::string folder = file.substr(0, file.rfind('/'));
  const auto device = known.get<std::string>("AOTI_DEVICE_KEY", "cpu");
  provide_libtorch(device);
  std::shared_ptr<Compiled> compiled;
  try {
    compiled =
        std::make_shared<Compiled>(path, extents, device, folder.substr(folder.rfind('/') + 1));
  } catch (const std::exception& error) {
    if (device::is_out_of_memory(error)) throw;
    throw DataError("{}: a compiled model that can't be loaded: {}", path, nn::brief(error));
  }
  if (extents[1].is_fixed()) imported.in_channels = extents[1].least;
  imported.spatial_dims = std::ssize(extents) - 2;
  if (std::all_of(extents.begin() + 2, extents.end(), [](const Extent& e) { return e.is_fixed(); }))
    for (auto extent = extents.begin() + 2; extent != extents.end(); ++extent)
      imported.window.push_back(extent->least);
  imported.fingerprint = io::fingerprint(file + source);  // its name is a hash of the code
  imported.forward = [compiled](const at::Tensor& windows) { return compiled->run(windows); };
  imported.place = [compiled](c10::Device device, bool /*on_tensor_cores*/) {
    compiled->expect_device(device);
  };
  return imported;
}

static LoadedModel load_aoti(const std::string& path, const CheckpointOptions& options) {
  return complete(path, open_aoti(path), options);
}
static const bool is_aoti_added = add_model_kind(io::ModelKind::aoti, {load_aoti});

}  // namespace cytra::inference
