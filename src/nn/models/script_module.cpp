// ScriptModule: a TorchScript file of others, trained without Python (docs/networks.md).
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/registry.h"
#include "device/error.h"
#include "nn/foreign_network.h"
#include "nn/model.h"
#include "nn/script/file.h"
#include "nn/script/fitting.h"
#include "nn/script/load.h"
#include "nn/script/message.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

namespace jit = torch::jit;

/// A module of the script: its parameters and buffers, and its mode.
struct ScriptPart final : torch::nn::Module {
  void train(bool on = true) override {
    Module::train(on);
    if (script && script->hasattr("training")) script->setattr("training", on);
  }
  std::optional<jit::Module> script;
};

class ScriptModule final : public Model {
 public:
  struct Options : ForeignOptions {
    template <class V>
    void visit(V& v) {
      ForeignOptions::visit(
          v, "what torch.jit.save wrote (net.pt), or a checkpoint that was trained of it");
    }
    void check() const {
      if (gradient_checkpointing) {
        throw ConfigError(
            "gradient_checkpointing: a script is called as a whole, so no part of it can be "
            "computed again; expected false (model=exported takes true)");
      }
    }
  };
  explicit ScriptModule(const Options& options)
      : Model(options), path_(options.file), deep_supervision_(options.deep_supervision) {
    ScriptFile file(path_);
    mirror(file);
    auto kept = std::make_shared<torch::nn::Module>();
    const std::string code = file.without_weights();
    kept->register_buffer("torchscript",
                          at::tensor(at::ArrayRef<uint8_t>(
                              reinterpret_cast<const uint8_t*>(code.data()), code.size())));
    const std::string name(kGraphModule);
    code_ = register_module(name.substr(0, name.size() - 1), kept);
    link(c10::kCPU);
    try_out(options);
    for (const std::string& remark : file.remarks) log::warn("{}: {}", path_, remark);
  }

  at::Tensor forward(const at::Tensor& image) override { return forward_all(image).front(); }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    std::vector<at::Tensor> results = results_of(image);
    const std::vector<int64_t> expected = shape_of(image.size(0), image.sizes().slice(2));
    if (results[0].sizes() != at::IntArrayRef(expected)) {
      throw DataError(fmt::format("{}: forward() gives ({}) for an image of ({}), expected ({})",
                                  path_,
                                  fmt::join(results[0].sizes(), ","),
                                  fmt::join(image.sizes(), ","),
                                  fmt::join(expected, ",")));
    }
    if (!deep_supervision_ || !is_training()) results.resize(1);
    return results;
  }
  std::vector<int64_t> divisor() const override { return divisor_; }
  std::vector<int64_t> fixed_size() const override { return fixed_; }
  int64_t in_channels() const override { return in_channels_; }
  int64_t out_channels() const override { return out_channels_; }
  int64_t spatial_dims() const override { return spatial_dims_; }

  void train(bool on = true) override {
    Model::train(on);
    if (script_.hasattr("training")) script_.setattr("training", on);
  }
  using Model::to;
  void to(torch::Device device, bool non_blocking) override {
    Model::to(device, non_blocking);
    link(device);
  }
  void to(torch::Device device, torch::Dtype type, bool non_blocking) override {
    Model::to(device, type, non_blocking);
    link(device);
  }

 private:
  /// Where the script looks a parameter or buffer up.
  struct Slot {
    jit::ObjectPtr object;
    std::size_t number;
    at::Tensor tensor;
  };

  /// Makes modules of the script's names, with its tensors; one that several have is one.
  void mirror(const ScriptFile& file) {
    for (const auto& item : file.module.named_modules()) {
      torch::nn::Module* part = this;
      if (!item.name.empty()) {
        const std::size_t dot = item.name.rfind('.');
        if (dot != std::string::npos) part = parts_.at(item.name.substr(0, dot)).get();
        part = (parts_[item.name] = part->register_module(item.name.substr(dot + 1),
                                                          std::make_shared<ScriptPart>()))
                   .get();
      }
      for (const auto& own : item.value.named_parameters(/*recurse=*/false))
        add(*part, item.name, own, true, file);
      for (const auto& own : item.value.named_buffers(/*recurse=*/false))
        add(*part, item.name, own, false, file);
    }
  }
  void add(torch::nn::Module& part,
           const std::string& module,
           const jit::NameTensor& own,
           bool is_parameter,
           const ScriptFile& file) {
    const std::string name = module.empty() ? own.name : module + '.' + own.name;
    const auto [first, is_new] = first_names_.try_emplace(place_of(own.value), name);
    if (!is_new) {
      tensors_[name] = tensors_.at(first->second);
      return;
    }
    const at::Tensor tensor = file.tensor(name, own.value);
    tensors_[name] = is_parameter ? part.register_parameter(own.name, tensor)
                                  : part.register_buffer(own.name, tensor);
  }

  /// Loads the code for a device, since Module::to() leaves its constants, with the tensors here.
  void link(c10::Device device) {
    if (device_ == device) return;
    const at::Tensor bytes = code_->named_buffers()["torchscript"].cpu();
    script_ = load_kept_torchscript(
        path_,
        {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())},
        device);
    device_ = device;
    slots_.clear();
    std::map<TensorPlace, at::Tensor> own;  // of the stand-ins
    for (const auto& item : script_.named_modules()) {
      if (!item.name.empty()) parts_.at(item.name)->script = item.value;
      const std::string front = item.name.empty() ? "" : item.name + '.';
      const jit::ObjectPtr object = item.value._ivalue();
      for (std::size_t i = 0; i < object->type()->numAttributes(); ++i) {
        const auto found = tensors_.find(front + object->type()->getAttributeName(i));
        if (found == tensors_.end()) continue;
        own[place_of(object->getSlot(i).toTensor())] = found->second;
        slots_.push_back({object, i, found->second});
        object->setSlot(i, found->second);
      }
    }
    replace_in_lists(script_, own);
    train(is_training());
  }

  std::vector<ScriptResult> run(const at::Tensor& image) {
    std::vector<ScriptResult> results;
    try {
      const ScriptCall call;
      // The optimizing executor compiles other code after the first steps, with other last bits: a
      // training that is resumed would not be the same.
      const jit::GraphOptimizerEnabledGuard as_written(false);
      // The image is the caller's, and the script may change what it gets.
      results = script_results(path_, script_.forward({image.clone()}));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (device::is_out_of_memory(error)) throw;
      throw DataError(fmt::format("{}: it fails for images of ({}): {}",
                                  path_,
                                  fmt::join(image.sizes(), ","),
                                  brief(error)));
    }
    keep_assigned();
    if (results.empty()) throw DataError(path_ + ": forward() gives no tensor");
    return results;
  }
  /// All results, that of model.output first.
  std::vector<at::Tensor> results_of(const at::Tensor& image) {
    std::vector<ScriptResult> results = run(image);
    const auto chosen = std::find_if(results.begin(), results.end(), [&](const ScriptResult& one) {
      return one.name == output_;
    });
    if (chosen == results.end())
      throw DataError(fmt::format("{}: forward() gives no {}", path_, printable(output_)));
    std::rotate(results.begin(), chosen, chosen + 1);
    std::vector<at::Tensor> tensors;
    for (ScriptResult& result : results) tensors.push_back(std::move(result.tensor));
    return tensors;
  }
  /// A script may put another tensor in a buffer's place, as norms of old files do.
  void keep_assigned() {
    const at::NoGradGuard no_grad;
    for (Slot& slot : slots_) {
      const c10::IValue value = slot.object->getSlot(slot.number);
      if (!value.isTensor() || value.toTensor().is_same(slot.tensor)) continue;
      slot.tensor.copy_(value.toTensor());
      slot.object->setSlot(slot.number, slot.tensor);
    }
  }

  std::vector<int64_t> shape_of(int64_t batch, at::IntArrayRef sides) const {
    std::vector<int64_t> shape{batch, out_channels_};
    shape.insert(shape.end(), sides.begin(), sides.end());
    return shape;
  }

  /// Finds what the file does not say.
  void try_out(const Options& options) {
    const at::Tensor kernel = first_kernel(script_);
    const int64_t own_channels = kernel.defined() ? kernel.size(1) : 0;
    const int64_t own_dims = kernel.defined() ? kernel.dim() - 2 : 0;
    in_channels_ = options.in_channels.value_or(own_channels);
    spatial_dims_ = options.spatial_dims.value_or(own_dims);
    for (const auto& [key, value, least, most] :
         {std::tuple("in_channels", in_channels_, int64_t{1}, int64_t{65536}),
          std::tuple("spatial_dims", spatial_dims_, int64_t{2}, int64_t{3})}) {
      if (value >= least && value <= most) continue;
      throw ConfigError(fmt::format("model.{}: {} is {}, expected a number from {} to {}",
                                    key,
                                    path_,
                                    value == 0 ? "silent about it" : std::to_string(value),
                                    least,
                                    most));
    }
    eval();
    const at::NoGradGuard no_grad;
    std::string failure;
    const auto fits = [&](const std::vector<int64_t>& sides) {
      std::vector<int64_t> shape{1, in_channels_};
      shape.insert(shape.end(), sides.begin(), sides.end());
      int64_t count = 1;
      for (const int64_t side : shape) count *= side;
      try {
        const std::vector<ScriptResult> results =
            run(at::arange(count, at::kFloat).sin_().view(shape));
        std::vector<std::string> names;
        for (const ScriptResult& one : results) names.push_back(one.name);
        const ScriptResult& chosen =
            results[result_called(path_, "output", options.output.value_or("0"), names)];
        output_ = chosen.name;
        const at::Tensor& result = chosen.tensor;
        if (result.dim() < 2) throw DataError(path_ + ": forward() gives numbers, expected logits");
        out_channels_ = result.size(1);
        if (result.sizes() == at::IntArrayRef(shape_of(1, sides))) return true;
        failure = fmt::format("{}: forward() gives ({}) for an image of ({}), expected its sides",
                              path_,
                              fmt::join(result.sizes(), ","),
                              fmt::join(shape, ","));
      } catch (const DataError& error) {
        failure = error.what();
      }
      return false;
    };
    Fitting fitting;
    if (options.divisor) {
      fitting = fit_divisor(checked_divisor(*options.divisor, spatial_dims_), fits);
    } else {
      fitting = find_divisor(static_cast<std::size_t>(spatial_dims_), fits);
    }
    if (fitting.divisor.empty()) {
      const auto said = [](const char* key, int64_t given, int64_t own) {
        return given == own || own == 0 ? ""
                                        : fmt::format(
                                              "; model.{}: {}, but its first convolution "
                                              "takes {}",
                                              key,
                                              given,
                                              own);
      };
      if (!options.in_channels) failure += "; model.in_channels gives the channels of images";
      throw DataError(failure + said("in_channels", in_channels_, own_channels) +
                      said("spatial_dims", spatial_dims_, own_dims));
    }
    expect_as_given(path_, "out_channels", options.out_channels, out_channels_);
    divisor_ = fitting.divisor;
    if (fitting.is_fixed) {
      fixed_ = divisor_;
      std::fill(divisor_.begin(), divisor_.end(), 1);
    }
    train();
  }

  std::string path_;
  std::string output_;  // the name of the result that is trained and predicted
  bool deep_supervision_;
  std::map<std::string, std::shared_ptr<ScriptPart>> parts_;
  std::map<std::string, at::Tensor> tensors_;  // by all their names
  std::map<TensorPlace, std::string> first_names_;
  std::shared_ptr<torch::nn::Module> code_;
  jit::Module script_;
  std::optional<c10::Device> device_;  // the script's
  std::vector<Slot> slots_;
  std::vector<int64_t> divisor_, fixed_;
  int64_t in_channels_ = 0, out_channels_ = 0, spatial_dims_ = 0;
};
CYTRA_REGISTER(Model, ScriptModule, "ScriptModule");

}  // namespace
}  // namespace cytra::nn
