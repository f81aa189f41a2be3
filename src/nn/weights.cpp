#include "nn/weights.h"

#include <tuple>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/json.h"
#include "io/weights/torch_file.h"
#include "nn/checkpoint_format.h"

namespace cytra::nn {
namespace {

/// Whether the files of other libraries hold this tensor under another name, too: MONAI's DynUNet
/// and nnU-Net's networks register some blocks twice.
bool is_second_name(const std::string& name) {
  return name.starts_with("skip_layers.") || name.starts_with("decoder.encoder.") ||
         name.find(".all_modules.") != std::string::npos;
}

/// Whether a tensor is a part of the graph of an exported network, which is no weight: it stays.
bool is_of_graph(const std::string& name) {
  const std::size_t found = name.rfind(kGraphModule);
  return found != std::string::npos && (found == 0 || name[found - 1] == '.');
}

std::string list_some(const std::vector<std::string>& names) {
  const std::size_t shown = std::min<std::size_t>(names.size(), 5);
  return join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown)}, ", ") +
         (shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
}

}  // namespace

std::map<std::string, at::Tensor> state_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> state;
  for (const auto& item : module.named_parameters()) state[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) state[item.key()] = item.value();
  return state;
}

namespace {

/// The state without the graph of an exported network.
std::map<std::string, at::Tensor> weights_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> state = state_of(module);
  for (auto entry = state.begin(); entry != state.end();)
    entry = is_of_graph(entry->first) ? state.erase(entry) : std::next(entry);
  return state;
}

/// Warns where a checkpoint was trained of another export than the module has.
void say_other_graph(const torch::nn::Module& module,
                     const io::TensorViews& tensors,
                     const std::string& path,
                     const std::string& prefix) {
  for (const auto& [name, tensor] : state_of(module)) {
    if (!is_of_graph(name) || name.find(".constant_") != std::string::npos) continue;
    const auto stored = tensors.find(prefix + name);
    if (stored == tensors.end() || tensor_of(stored->second, name).equal(tensor.cpu())) continue;
    log::warn(
        "{}: it was trained of another file than model.file, whose calls may differ; "
        "model.file={} takes its own",
        path,
        path);
  }
}

}  // namespace

void load_state(torch::nn::Module& module,
                const io::TensorViews& tensors,
                const std::string& path,
                const std::string& prefix,
                Fit fit) {
  const std::map<std::string, at::Tensor> state = weights_of(module);
  say_other_graph(module, tensors, path, prefix);
  std::vector<std::string> missing, unexpected, reshaped;
  std::map<std::string, const io::TensorView*> taken;
  int64_t all_numbers = 0, taken_numbers = 0, reshaped_numbers = 0;
  for (const auto& [name, tensor] : state) {
    all_numbers += tensor.numel();
    const auto stored = tensors.find(prefix + name);
    if (stored == tensors.end()) {
      missing.push_back(name);
    } else if (stored->second.shape != tensor.sizes().vec()) {
      reshaped_numbers += tensor.numel();
      reshaped.push_back(fmt::format("{} is ({}), the model's is ({})",
                                     name,
                                     fmt::join(stored->second.shape, ","),
                                     fmt::join(tensor.sizes(), ",")));
    } else {
      taken_numbers += tensor.numel();
      taken[name] = &stored->second;
    }
  }
  for (const auto& [name, view] : tensors) {
    if (!name.starts_with(prefix)) continue;
    const std::string own = name.substr(prefix.size());
    if (state.count(own) == 0 && !is_second_name(own) && !is_of_graph(own))
      unexpected.push_back(printable(own));
  }
  std::vector<std::string> parts;
  for (const auto& [what, names] : {std::pair("missing", &missing),
                                    std::pair("unexpected", &unexpected),
                                    std::pair("of another shape", &reshaped)}) {
    if (!names->empty())
      parts.push_back(fmt::format("{} {} ({})", names->size(), what, list_some(*names)));
  }
  const double share = static_cast<double>(taken_numbers) / static_cast<double>(all_numbers);
  const auto fail = [&](const std::string& advice) {
    throw DataError("{}: weights do not match the model: {}; {}", path, join(parts, ", "), advice);
  };
  if (!missing.empty() && missing.size() == state.size())
    fail("it holds none of the model's names");
  if (fit == Fit::most && 2 * taken_numbers < all_numbers)
    fail(
        fmt::format("{:.1f} % of them fit, expected half or more, as of a training of this model; "
                    "checkpoint.strict=false takes less, where shapes agree",
                    100 * share));
  const bool is_other = fit == Fit::some ? taken_numbers < reshaped_numbers : fit != Fit::most;
  if (!reshaped.empty() && is_other) fail("the checkpoint belongs to another model configuration");
  if (!parts.empty() && fit == Fit::all) fail("checkpoint.strict=false loads what fits");
  if (fit != Fit::all)
    log::info("{}: {:.1f} % of the model's weights are taken{}{}",
              path,
              100 * share,
              parts.empty() ? "" : "; others ",
              join(parts, ", "));
  const at::NoGradGuard no_grad;
  for (const auto& [name, view] : taken) at::Tensor(state.at(name)).copy_(tensor_of(*view, name));
}

io::TensorViews fit_names(const torch::nn::Module& module,
                          const io::TensorViews& tensors,
                          const std::string& path) {
  const std::map<std::string, at::Tensor> state = weights_of(module);
  std::vector<std::string> fronts{""};  // what all of the module's names begin with
  if (!state.empty()) {
    const std::string &first = state.begin()->first, &last = state.rbegin()->first;
    for (std::size_t end = first.find('.'); end != std::string::npos;
         end = first.find('.', end + 1))
      if (last.starts_with(first.substr(0, end + 1))) fronts.push_back(first.substr(0, end + 1));
  }
  using Change = std::pair<std::string, std::string>;  // taken off, put on
  std::map<Change, int64_t> fitting;
  for (const auto& [name, view] : tensors) {
    if (name.size() > 1000) continue;  // no real name, and slow to split
    std::size_t begin = 0;
    do {
      for (const std::string& front : fronts) {
        const auto own = state.find(front + name.substr(begin));
        if (own != state.end() && own->second.sizes() == at::IntArrayRef(view.shape))
          ++fitting[{name.substr(0, begin), front}];
      }
      begin = name.find('.', begin) + 1;
    } while (begin > 0);
  }
  Change best;
  const auto rank = [&](const Change& change) {  // averaged weights come after the others
    const auto count = fitting.find(change);
    return std::tuple(count == fitting.end() ? 0 : -count->second,
                      change.first.find("ema") != std::string::npos,
                      change.first.size() + change.second.size());
  };
  for (const auto& [change, count] : fitting) {
    if (rank(change) < rank(best)) best = change;
  }
  const auto& [off, on] = best;
  if (off.empty() && on.empty()) return tensors;
  log::info("{}: names taken{}{}",
            path,
            off.empty() ? "" : fmt::format(" without '{}'", printable(off)),
            on.empty() ? "" : fmt::format(" with '{}' in front", on));
  io::TensorViews fitted;
  for (const auto& [name, view] : tensors) {
    if (name.starts_with(off)) fitted[on + name.substr(off.size())] = view;
  }
  return fitted;
}

void load_weights(const std::string& path, torch::nn::Module& module, Fit fit) {
  const auto load_fitted = [&](const io::TensorViews& tensors) {
    load_state(module, fit_names(module, tensors, path), path, "", fit);
  };
  if (io::is_torch_file(path)) {
    const io::TorchFile file(path);
    const auto reading = file.reading();
    if (!file.place().empty()) log::info("{}: weights from '{}'", path, file.place());
    load_fitted(file.tensors());
    return reading.check();
  }
  const io::SafetensorsFile file(path);
  const auto reading = file.reading();
  format_of(file.metadata(), path);
  file.verify();
  if (file.metadata().count("state") != 0) {  // a checkpoint of ours
    load_state(module, file.tensors(), path, "model.", fit);
  } else {
    load_fitted(file.tensors());
  }
  reading.check();
}

io::SafetensorsFile open_checkpoint(const std::string& path, const std::string& hint) {
  if (!io::is_torch_file(path)) return io::SafetensorsFile(path);
  throw DataError("{}: not a checkpoint of Cytra (a file of PyTorch); {}", path, hint);
}

const std::string& checkpoint_text(const io::SafetensorsFile& checkpoint,
                                   const std::string& path,
                                   const std::string& key,
                                   const std::string& hint) {
  format_of(checkpoint.metadata(), path);
  const auto entry = checkpoint.metadata().find(key);
  if (entry != checkpoint.metadata().end()) return entry->second;
  throw DataError("{}: not a checkpoint of Cytra (no '{}' in its metadata); {}", path, key, hint);
}

config::Node checkpoint_config(const std::string& path) {
  const std::string hint =
      "bare weights: `train` takes them with checkpoint.weights_only=true, `predict` and "
      "`export_model` with checkpoint.config=RUN_FOLDER_OR_YAML";
  const io::SafetensorsFile file = open_checkpoint(path, hint);
  config::Node config = config::from_utf8(
      config::parse_yaml(checkpoint_text(file, path, "config", hint), path + " (config)"));
  carry_over(config, format_of(file.metadata(), path), moved_keys_of_checkpoints());
  return config;
}

}  // namespace cytra::nn
