#include "nn/summary.h"

#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "base/table.h"
#include "nn/flop_counter.h"
#include "nn/forward_state.h"
#include "nn/model.h"
#include "ops/conv/winograd/winograd.h"

namespace cytra::nn {
namespace {

/// A module with its row; `own` counts what happened in it but in no inner module.
struct Measured {
  const torch::nn::Module* module;
  std::size_t parent;
  SummaryRow row;
  int64_t own_flops = 0, own_bytes = 0;
};

std::string type_of(const torch::nn::Module& module) {
  const std::string name = module.name();  // "cytra::nn::(anonymous namespace)::Block"
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

void add_modules(const torch::nn::Module& module,
                 const std::string& name,
                 std::size_t parent,
                 std::vector<Measured>& modules) {
  const std::size_t place = modules.size();
  SummaryRow row;
  row.name = name;
  row.type = type_of(module);
  row.depth = modules.empty() ? 0 : modules[parent].row.depth + 1;
  for (const at::Tensor& parameter : module.parameters()) {
    row.parameters += parameter.numel();
    if (parameter.requires_grad()) row.trainable += parameter.numel();
  }
  modules.push_back({&module, parent, std::move(row)});
  for (const auto& child : module.named_children()) {
    add_modules(
        *child.value(), name.empty() ? child.key() : name + "." + child.key(), place, modules);
  }
}

/// Follows one forward pass: which module runs, which memory is taken and not given back, and which
/// operations are run.
class Meter final : public Watcher, public c10::MemoryReportingInfoBase {
 public:
  explicit Meter(std::vector<Measured>& modules) : modules_(modules) {
    for (std::size_t e = 0; e < modules_.size(); ++e) places_.emplace(modules_[e].module, e);
  }

  void begin(const torch::nn::Module& module, const at::Tensor& input) override {
    const auto place = places_.find(&module);
    scopes_.push_back(place == places_.end() ? scopes_.back() : place->second);
    std::vector<int64_t>& in = here().row.in;
    if (in.empty()) in = input.sizes().vec();
  }
  void end(const at::Tensor& output) override {
    here().row.out = output.sizes().vec();
    scopes_.pop_back();
  }

  void reportMemoryUsage(void* address,
                         int64_t bytes,
                         std::size_t /*allocated*/,
                         std::size_t /*reserved*/,
                         c10::Device /*device*/) override {
    if (bytes > 0) {
      owners_[address] = scopes_.back();
      here().own_bytes += bytes;
    } else if (const auto owner = owners_.find(address); owner != owners_.end()) {
      modules_[owner->second].own_bytes += bytes;
      owners_.erase(owner);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  void add_flops(int64_t flops) { here().own_flops += flops; }

 private:
  Measured& here() { return modules_[scopes_.back()]; }

  std::vector<Measured>& modules_;
  std::unordered_map<const torch::nn::Module*, std::size_t> places_;
  std::vector<std::size_t> scopes_{0};
  std::unordered_map<void*, std::size_t> owners_;
};

class Watching {
 public:
  explicit Watching(Watcher& by) : before_(watcher) { watcher = &by; }
  ~Watching() { watcher = before_; }
  Watching& operator=(Watching&&) = delete;

 private:
  Watcher* before_;
};

/// The modules after a forward pass.
std::vector<Measured> measure(Model& model, const std::vector<int64_t>& shape) {
  std::vector<Measured> modules;
  add_modules(model, "", 0, modules);
  const at::Tensor image = at::zeros(shape, model.parameters().at(0).options());
  const auto meter = std::make_shared<Meter>(modules);
  {
    const Watching watching(*meter);
    const FlopCounter counter([&meter](const Flops& flops) { meter->add_flops(flops.forward); });
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    const std::vector<at::Tensor> outputs = model.all(image);
    at::autocast::clear_cache();                      // as at the end of a step
    for (std::size_t e = modules.size(); e-- > 0;) {  // children come after their parents
      Measured& measured = modules[e];
      measured.row.flops += measured.own_flops;
      measured.row.kept_bytes += measured.own_bytes;
      if (e == 0) break;
      modules[measured.parent].row.flops += measured.row.flops;
      modules[measured.parent].row.kept_bytes += measured.row.kept_bytes;
    }
  }
  return modules;
}

/// "1.2 M"
std::string format_count(int64_t count) {
  const char* const units[] = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  auto value = static_cast<double>(count);
  for (; value >= 999.5 && unit + 1 < std::size(units); value /= 1000) ++unit;
  return fmt::format("{:.{}f}{}", value, unit == 0 || value >= 99.95 ? 0 : 1, units[unit]);
}

std::string format_parameters(const SummaryRow& row) {
  const char* const frozen = row.trainable == row.parameters ? ""
                             : row.trainable == 0            ? " frozen"
                                                             : " part frozen";
  return format_count(row.parameters) + frozen;
}

/// The last `width` characters at most: the end of a dotted name says more than its beginning.
std::string last(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : ".." + text.substr(text.size() - width + 2);
}

}  // namespace

Summary summarize(Model& model, const std::vector<int64_t>& shape, int64_t max_depth) {
  Summary summary;
  summary.shape = shape;
  summary.gradient_checkpointing = model.settings.gradient_checkpointing;
  for (const at::Tensor& parameter : model.parameters()) {
    const auto bytes = static_cast<int64_t>(parameter.nbytes());
    summary.parameter_bytes += bytes;
    if (parameter.requires_grad()) summary.gradient_bytes += bytes;
  }
  summary.optimizer_bytes = 2 * summary.gradient_bytes;

  const KeepForwardState state(model);
  const at::AutoGradMode grad(true);
  model.train();
  struct Restore {
    Model& model;
    bool gradient_checkpointing;
    ~Restore() { model.settings.gradient_checkpointing = gradient_checkpointing; }
  } const restore{model, model.settings.gradient_checkpointing};
  std::vector<int64_t> checkpointed;
  if (summary.gradient_checkpointing) {
    for (const Measured& measured : measure(model, shape))
      checkpointed.push_back(measured.row.kept_bytes);
  }
  model.settings.gradient_checkpointing = false;
  const double spared_before = ops::cpu::spared_multiplications();
  std::vector<Measured> modules = measure(model, shape);
  summary.spared_flops =
      static_cast<int64_t>(2 * (ops::cpu::spared_multiplications() - spared_before));
  for (std::size_t e = 0; e < modules.size(); ++e) {
    SummaryRow& row = modules[e].row;
    if (max_depth >= 0 && row.depth > max_depth) continue;
    if (!checkpointed.empty()) row.checkpointed_bytes = checkpointed[e];
    summary.rows.push_back(std::move(row));
  }
  return summary;
}

std::string to_text(const Summary& summary) {
  using Line = std::vector<std::string>;
  std::vector<Line> lines{{"Name", "Type", "Params", "In", "Out", "FLOPs", "Kept"}};
  const bool checkpointing = summary.gradient_checkpointing;
  if (checkpointing) lines[0].push_back("Checkp.");
  const auto bytes = [](int64_t count) { return format_bytes(static_cast<double>(count)); };
  for (const SummaryRow& row : summary.rows) {
    Line line{row.depth == 0 ? "(model)" : last(row.name, 25),
              last(row.type, 12),
              format_parameters(row),
              fmt::format("{}", fmt::join(row.in, "x")),
              fmt::format("{}", fmt::join(row.out, "x"))};
    const bool ran = !row.out.empty() || row.flops > 0 || row.kept_bytes > 0;
    line.push_back(ran ? format_count(row.flops) : "");
    line.push_back(ran ? bytes(row.kept_bytes) : "");
    if (checkpointing) line.push_back(ran ? bytes(row.checkpointed_bytes) : "");
    lines.push_back(std::move(line));
  }
  std::string text = format_table(lines);
  const SummaryRow& model = summary.rows.at(0);
  text += fmt::format("{} parameters, {} of them trained: {}; gradients {}, Adam's state {}\n",
                      format_count(model.parameters),
                      format_count(model.trainable),
                      bytes(summary.parameter_bytes),
                      bytes(summary.gradient_bytes),
                      bytes(summary.optimizer_bytes));
  text += fmt::format(
      "forward pass of {}: {} FLOPs, ", fmt::join(summary.shape, "x"), format_count(model.flops));
  if (summary.spared_flops > 0) {
    text += fmt::format(
        "{:.0f} % spared by Winograd's convolutions, ",
        100 * static_cast<double>(summary.spared_flops) / static_cast<double>(model.flops));
  }
  text += fmt::format("keeps {} for the backward pass", bytes(model.kept_bytes));
  if (checkpointing && model.kept_bytes > 0) {
    text += fmt::format(
        "\nwith gradient_checkpointing {} ({:.0f} % less), and one block while it is computed "
        "again",
        bytes(model.checkpointed_bytes),
        100.0 - 100.0 * static_cast<double>(model.checkpointed_bytes) /
                    static_cast<double>(model.kept_bytes));
  }
  return text;
}

}  // namespace cytra::nn
