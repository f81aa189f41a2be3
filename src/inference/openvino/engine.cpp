// Runs models on a CPU by Intel's OpenVINO.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openvino/core/version.hpp>
#include <openvino/pass/serialize.hpp>
#include <openvino/runtime/core.hpp>
#include <openvino/runtime/intel_cpu/properties.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/shared_library.h"
#include "base/strings.h"
#include "inference/engines/openvino_module.h"
#include "inference/openvino/quantize.h"
#include "inference/openvino/read_model.h"
#include "io/fingerprint.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;

constexpr char kCacheBegin[] = "cytra-openvino 1 ";
constexpr int64_t kCacheBytes = 2'000'000'000;  // of all cached models

ov::Core& core() {
  // TBB would load this library with RTLD_DEEPBIND: in a program with its own allocator, memory of
  // the library would then be freed by libc. A library that is already loaded is not loaded again.
  static const SharedLibrary tbbbind(path_beside(&ov::get_openvino_version, "libtbbbind_2_5.so.3"),
                                     SharedLibrary::Symbols::local);
  static ov::Core core;
  return core;
}

/// The version of OpenVINO: "2026.4".
std::string version() {
  const std::string build = ov::get_openvino_version().buildNumber;
  return build.substr(0, build.find('.', build.find('.') + 1));
}

ov::element::Type element_for(c10::ScalarType type) {
  const auto needed = type == at::kBFloat16 ? "BF16" : "FP16";
  if (type == at::kFloat) return ov::element::f32;
  const auto found = core().get_property("CPU", ov::device::capabilities);
  if (!contains(found, needed))
    throw EngineUnfit("this processor does not compute in " + name_of(type), true);
  return type == at::kBFloat16 ? ov::element::bf16 : ov::element::f16;
}

/// Settings for exactly the wanted precision and threads: OpenVINO's defaults are bfloat16 on AMX,
/// and threads bound to cores, the same cores in every process.
ov::AnyMap settings(ov::element::Type element, int64_t at_once) {
  return {ov::hint::inference_precision(element),
          ov::num_streams(static_cast<int32_t>(at_once)),
          ov::hint::enable_cpu_pinning(false),
          ov::inference_num_threads(at::get_num_threads())};
}

/// The file of a compiled model, and its first line.
struct CacheFile {
  std::string path, line;
};

CacheFile cache_file_of(const OpenVinoTask& task) {
  if (task.cache_folder.empty() || task.fingerprint.empty() || !task.calibration.empty()) return {};
  const std::string key = fmt::format("{} {} {} {} {}",
                                      task.fingerprint,
                                      fmt::join(task.shape, "x"),
                                      name_of(task.type),
                                      ov::get_openvino_version().buildNumber,
                                      core().get_property("CPU", ov::device::full_name));
  return {task.cache_folder + "/" + io::fingerprint(key) + ".openvino", kCacheBegin + key};
}

/// Whether it is a regular file, no link, that only this user can have written: a compiled model
/// is code, and others may share the folder.
bool is_own_file(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Whether a file "0123...def.openvino" begins as ours do, and is not a user's file of that name.
bool is_cached_model(const fs::path& path) {
  const std::string stem = path.stem().string();
  if (path.extension() != ".openvino" || stem.size() != 32 ||
      stem.find_first_not_of("0123456789abcdef") != std::string::npos ||
      !is_own_file(path.string()))
    return false;
  char head[sizeof kCacheBegin] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof kCacheBegin - 1);
  return std::string_view(head) == kCacheBegin;
}

/// The compiled model that an earlier process kept; none when there is none, it is damaged, or
/// others may have written it.
ov::CompiledModel load_cached(const CacheFile& cached, ov::element::Type element, int64_t at_once) {
  std::error_code ignored;
  if (cached.path.empty() || !fs::exists(fs::symlink_status(cached.path, ignored))) return {};
  if (!is_own_file(cached.path)) {
    log::warn("{}: not used: it belongs to another user, or others may write to it", cached.path);
    return {};
  }
  try {
    const std::string text = read_file(cached.path, std::size_t{4} << 30);
    const std::size_t blob = cached.line.size() + 34;  // a blank, 32 digits, a new line
    if (text.size() <= blob || text.compare(0, cached.line.size(), cached.line) != 0 ||
        text[cached.line.size()] != ' ' || text[blob - 1] != '\n')
      return {};
    const std::string_view body(text.data() + blob, text.size() - blob);
    if (text.substr(cached.line.size() + 1, 32) != io::fingerprint(body))
      throw DataError("it is damaged");
    std::istringstream stream{std::string(body)};
    ov::CompiledModel compiled = core().import_model(stream, "CPU", settings(element, at_once));
    fs::last_write_time(cached.path, fs::file_time_type::clock::now(), ignored);
    return compiled;
  } catch (const std::exception& error) {
    log::debug("{}: not used, and made again: {}", cached.path, error.what());
    fs::remove(cached.path, ignored);
    return {};
  }
}

/// Removes the files that were not used for the longest time.
void drop_oldest(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  int64_t bytes = 0;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (!is_cached_model(entry->path())) continue;
    std::error_code ignored;
    bytes += static_cast<int64_t>(entry->file_size(ignored));
    files.emplace_back(entry->last_write_time(ignored), entry->path());
  }
  std::ranges::sort(files);
  for (auto file = files.begin(); file != files.end() && bytes > kCacheBytes; ++file) {
    std::error_code ignored;
    bytes -= static_cast<int64_t>(fs::file_size(file->second, ignored));
    remove_quietly(file->second);
  }
}

/// Keeps a compiled model. A cache that can't be written costs time only.
void keep(const CacheFile& cached, ov::CompiledModel& compiled) {
  if (cached.path.empty()) return;
  try {
    std::ostringstream stream;
    compiled.export_model(stream);
    const std::string blob = stream.str(), folder = fs::path(cached.path).parent_path().string();
    make_folders(folder);
    remove_stale_temporaries(folder);
    AtomicFile file(cached.path);
    file.write(cached.line + " " + io::fingerprint(blob) + "\n");
    file.write(blob);
    file.commit(/*durable=*/false);
    drop_oldest(folder);
  } catch (const std::exception& error) {
    log::debug("{}: the compiled model is not kept: {}", cached.path, error.what());
  }
}

ov::CompiledModel compile(const std::shared_ptr<ov::Model>& model,
                          ov::element::Type element,
                          int64_t at_once) {
  try {
    return core().compile_model(model, "CPU", settings(element, at_once));
  } catch (const ov::Exception& error) {
    throw EngineUnfit("OpenVINO can't compile the model: " + brief_openvino(error.what()), false);
  }
}

/// Throws: DataError for a value that a network's own type of input does not hold: conversion
/// would cut its fraction or wrap it.
void expect_values_of(const std::string& type, const at::Tensor& input) {
  static const std::map<std::string, std::pair<double, double>> kRanges{
      {"boolean", {0, 1}},
      {"u8", {0, 255}},
      {"i8", {-128, 127}},
      {"u16", {0, 65535}},
      {"i16", {-32768, 32767}},
      {"u32", {0, 0xFFFFFFFFU}},
      {"i32", {-0x1p31, 0x1p31 - 1}},
      {"u64", {0, 0x1p63}},
      {"i64", {-0x1p62, 0x1p62}}};
  const auto range = kRanges.find(type);
  if (range == kRanges.end()) return;
  const auto [least, most] = range->second;
  const auto* const first = static_cast<const float*>(input.const_data_ptr());
  const auto* const end = first + input.numel();
  const auto* const found = std::find_if(first, end, [&, least = least, most = most](float value) {
    return !(value >= least && value <= most && value == std::trunc(value));
  });
  if (found == end) return;
  throw DataError(
      "the network takes {}, whole numbers from {:.12g} to {:.12g}, and the image has, as its "
      "transforms prepared it, {:.6g}",
      type,
      least,
      most,
      *found);
}

/// Waits for requests that are under way when another one has thrown: they use tensors of ours.
class WaitForAll {
 public:
  explicit WaitForAll(std::vector<ov::InferRequest>& requests) : requests_(requests) {}
  ~WaitForAll() {
    for (ov::InferRequest& request : requests_) {
      try {
        if (request) request.wait();
      } catch (const std::exception&) {  // the first one is told
      }
    }
  }
  WaitForAll& operator=(WaitForAll&&) = delete;

 private:
  std::vector<ov::InferRequest>& requests_;
};

class OpenVino final : public FixedEngine {
 public:
  explicit OpenVino(const OpenVinoTask& task)
      : at_once_(task.at_once),
        element_(element_for(task.type)),
        is_int8_(!task.calibration.empty()),
        cache_file_(cache_file_of(task)),
        compiled_(load_cached(cache_file_, element_, at_once_)),
        was_accepted_(static_cast<bool>(compiled_)) {
    if (!was_accepted_) {
      const std::shared_ptr<ov::Model> model =
          task.onnx ? read_onnx(core(), *task.onnx, task.shape)
                    : read_torchscript(task.torchscript(), task.shape);
      if (is_int8_) quantize(model, core(), task.calibration);
      compiled_ = compile(model, element_, at_once_);
    }
    count_ = static_cast<int64_t>(compiled_.input().get_shape().at(0));
    for (const std::string& name : compiled_.input().get_names())
      if (name.starts_with(kInputType)) input_type_ = name.substr(kInputType.size());
    for (const auto& output : compiled_.outputs()) {
      if (output.get_partial_shape().is_dynamic())
        throw EngineUnfit("OpenVINO can't tell the size of the model's outputs", false);
      const ov::Shape& shape = output.get_shape();
      if (shape.empty() || shape[0] != static_cast<std::size_t>(count_))
        throw EngineUnfit("the model does not give an output for each window", false);
      shapes_.emplace_back(shape.begin(), shape.end());
    }
  }

  std::vector<Tensor> run(const Tensor& windows) override {
    const int64_t given = windows.size(0), whole = (given + count_ - 1) / count_ * count_;
    at::Tensor input = windows.to(at::kFloat).contiguous();
    expect_values_of(input_type_, input);
    if (whole > given) {
      std::vector<int64_t> more = windows.sizes().vec();
      more[0] = whole - given;
      input = at::cat({input, input.narrow(0, given - 1, 1).expand(more)});
    }
    std::vector<Tensor> outputs;
    for (std::vector<int64_t> shape : shapes_) {
      shape[0] = whole;
      outputs.push_back(at::empty(shape, at::kFloat));
    }
    std::vector<ov::InferRequest> requests = take(std::min(whole / count_, at_once_));
    const WaitForAll until_none_writes(requests);
    for (int64_t first = 0; first < whole;) {
      for (ov::InferRequest& request : requests) {
        if (first == whole) break;
        request.set_input_tensor(part_of(input, first));
        for (std::size_t i = 0; i < outputs.size(); ++i)
          request.set_output_tensor(i, part_of(outputs[i], first));
        request.start_async();
        first += count_;
      }
      for (ov::InferRequest& request : requests) request.wait();
    }
    for (Tensor& output : outputs) output = output.narrow(0, 0, given);
    const std::lock_guard lock(mutex_);
    std::move(requests.begin(), requests.end(), std::back_inserter(idle_));
    return outputs;
  }

  std::string text() const override {
    return fmt::format("OpenVINO {}, {}{}",
                       version(),
                       is_int8_ ? "int8 and " : "",
                       name_of(element_ == ov::element::f32    ? at::kFloat
                               : element_ == ov::element::bf16 ? at::kBFloat16
                                                               : at::kHalf));
  }
  void accept() override { keep(cache_file_, compiled_); }
  bool was_accepted() const override { return was_accepted_; }

 private:
  /// A view of `count_` windows in torch's memory, valid until the next set_*_tensor().
  ov::Tensor part_of(const at::Tensor& tensor, int64_t first) const {
    const at::Tensor part = tensor.narrow(0, first, count_);
    return {ov::element::f32,
            ov::Shape(part.sizes().begin(), part.sizes().end()),
            part.mutable_data_ptr()};
  }
  /// Takes `count` requests; others may be in use by other threads.
  std::vector<ov::InferRequest> take(int64_t count) {
    std::vector<ov::InferRequest> requests;
    {
      const std::lock_guard lock(mutex_);
      for (; count > 0 && !idle_.empty(); --count) {
        requests.push_back(std::move(idle_.back()));
        idle_.pop_back();
      }
    }
    for (; count > 0; --count) requests.push_back(compiled_.create_infer_request());
    return requests;
  }

  int64_t count_ = 1, at_once_;  // windows of an inference, inferences
  ov::element::Type element_;
  bool is_int8_;
  CacheFile cache_file_;
  ov::CompiledModel compiled_;
  bool was_accepted_;
  std::vector<std::vector<int64_t>> shapes_;
  std::mutex mutex_;
  std::vector<ov::InferRequest> idle_;
  std::string input_type_;  // of an ONNX file
};

void write_ir(const std::shared_ptr<ov::Model>& model, const std::string& path) {
  std::ostringstream xml, bin;
  ov::pass::Serialize(xml, bin).run_on_model(model);
  AtomicFile weights(path + ".bin"), graph(path + ".xml");
  weights.write(bin.str());
  graph.write(xml.str());
  weights.commit();
  graph.commit();
}

}  // namespace

}  // namespace cytra::inference

extern "C" cytra::inference::FixedEngine* cytra_openvino_engine(
    const cytra::inference::OpenVinoTask& task) {
  return new cytra::inference::OpenVino(task);
}

extern "C" cytra::inference::OnnxFacts cytra_openvino_onnx(
    const std::string& onnx,
    const std::string& path,
    const std::optional<cytra::inference::OnnxEnds>& ends) {
  return cytra::inference::describe_onnx(cytra::inference::core(), onnx, path, ends);
}

extern "C" void cytra_openvino_export(const std::string& torchscript,
                                      const std::vector<int64_t>& shape,
                                      const std::string& config,
                                      const std::string& path) {
  const auto model = cytra::inference::read_torchscript(torchscript, shape);
  model->set_rt_info(config, "framework", "config");  // as OpenVINO keeps ONNX's metadata_props
  cytra::inference::write_ir(model, path);
}
