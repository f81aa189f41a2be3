#include "training/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/version.h"
#include "config/json.h"
#include "device/backend.h"
#include "device/device.h"
#include "io/safetensors.h"
#include "nn/checkpoint_format.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/scopes.h"
#include "training/grad_scaler.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/swapped_in.h"

namespace cytra::training {
namespace {

using config::Node;

/// JSON has no NaN and no infinity: to_json() writes them as texts.
double number_of_node(const Node& node) {
  if (node.kind != config::Kind::string) return node.as<double>();
  return node.string == "nan" ? std::nan("") : node.string == "-inf" ? -INFINITY : INFINITY;
}

Node numbers(const std::map<std::string, double>& values) {
  Node node = Node::make_map();
  for (const auto& [name, value] : values) node.set(name, Node::make_real(value));
  return node;
}

std::map<std::string, double> numbers_of(const Node& node) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : node.map) values[name] = number_of_node(value);
  return values;
}

Node to_node(const TrainState& state) {
  Node node = Node::make_map();
  node.set("epoch", Node::make_integer(state.epoch));
  node.set("batch", Node::make_integer(state.batch));
  node.set("step", Node::make_integer(state.step));
  node.set("skipped", Node::make_integer(state.skipped));
  node.set("validated_at", Node::make_integer(state.validated_at));
  node.set("total_steps", Node::make_integer(state.total_steps));
  node.set("lr", Node::make_real(state.lr));
  node.set("seconds", Node::make_real(state.seconds));
  node.set("loss_sum", Node::make_real(state.loss_sum));
  node.set("loss_count", Node::make_integer(state.loss_count));
  node.set("processes", Node::make_integer(state.processes));
  node.set("seed", Node::make_integer(state.seed));
  node.set("best_score", Node::make_real(state.best_score));
  node.set("best_path", Node::make_string(state.best_path));
  node.set("best_metric", Node::make_string(state.best_metric));
  node.set("best_mode", Node::make_string(state.best_mode));
  node.set("metrics", numbers(state.metrics));
  return node;
}

TrainState state_of(const Node& node) {
  TrainState state;
  state.epoch = node.get<int64_t>("epoch");
  state.batch = node.get<int64_t>("batch");
  state.step = node.get<int64_t>("step");
  state.skipped = node.get<int64_t>("skipped");
  state.validated_at = node.get<int64_t>("validated_at");
  state.total_steps = node.get<int64_t>("total_steps", 0);
  if (const Node* lr = node.find_direct("lr")) state.lr = number_of_node(*lr);
  state.seconds = number_of_node(node.at("seconds"));
  state.loss_sum = number_of_node(node.at("loss_sum"));
  state.loss_count = node.get<int64_t>("loss_count");
  state.processes = node.get<int64_t>("processes", 1);
  state.seed = node.get<int64_t>("seed", 0);
  state.best_score = number_of_node(node.at("best_score"));
  state.best_path = node.get<std::string>("best_path");
  state.best_metric = node.get<std::string>("best_metric", "");
  state.best_mode = node.get<std::string>("best_mode", "");
  state.metrics = numbers_of(node.at("metrics"));
  return state;
}

/// All tensors of the training, by their name in a checkpoint.
std::map<std::string, at::Tensor> tensors_of(const CheckpointedObjects& objects) {
  std::map<std::string, at::Tensor> all;
  const auto add = [&](const std::string& prefix, const std::map<std::string, at::Tensor>& some) {
    for (const auto& [name, tensor] : some) all[prefix + name] = tensor;
  };
  add("model.", nn::state_of(objects.task.model()));
  add("optimizer.", objects.optimizer.state());
  add("scaler.", objects.scaler.state());
  for (const auto& callback : objects.callbacks)
    add("callback." + callback->name + ".", callback->tensors());
  return all;
}

constexpr const char* kWeightsHint = "for bare weights set checkpoint.weights_only=true";

/// Throws: DataError when one of the training's tensors is missing or does not fit.
void expect_all(const io::SafetensorsFile& file,
                const std::string& prefix,
                const std::map<std::string, at::Tensor>& tensors,
                const std::string& path) {
  for (const auto& [name, tensor] : tensors) {
    const auto stored = file.tensors().find(prefix + name);
    if (stored == file.tensors().end() || stored->second.shape != tensor.sizes().vec()) {
      throw DataError(
          "{}: the state of the training does not fit ({}{}); checkpoint.weights_only=true starts "
          "it afresh",
          path,
          prefix,
          name);
    }
    nn::scalar_type_of(stored->second, prefix + name);
  }
}

void copy_all(const io::SafetensorsFile& file,
              const std::string& prefix,
              const std::map<std::string, at::Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors)
    at::Tensor(tensor).copy_(nn::tensor_of(file.tensors().at(prefix + name), name));
}

/// Tensors of the host like `present`: `old` ones when all of them fit, else new ones in one piece
/// of memory, as page-locking hundreds for a GPU takes seconds.
std::map<std::string, at::Tensor> room_for(const std::map<std::string, at::Tensor>& present,
                                           std::map<std::string, at::Tensor> old) {
  const auto fits = [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.sizes() == other.second.sizes() &&
           one.second.scalar_type() == other.second.scalar_type();
  };
  if (std::equal(present.begin(), present.end(), old.begin(), old.end(), fits)) return old;
  old.clear();  // before the new ones are there
  constexpr int64_t kAlignment = 64;
  const auto bytes_of = [](const at::Tensor& tensor) {
    return (static_cast<int64_t>(tensor.nbytes()) + kAlignment - 1) / kAlignment * kAlignment;
  };
  int64_t bytes = 0;
  bool is_pinned = false;
  for (const auto& [name, tensor] : present) {
    bytes += bytes_of(tensor);
    is_pinned = is_pinned || device::pins_memory(tensor.device());
  }
  const at::Tensor all = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(is_pinned));
  std::map<std::string, at::Tensor> room;
  int64_t begin = 0;
  for (const auto& [name, tensor] : present) {
    room[name] = all.narrow(0, begin, static_cast<int64_t>(tensor.nbytes()))
                     .view(tensor.scalar_type())
                     .view(tensor.sizes());
    begin += bytes_of(tensor);
  }
  return room;
}

/// The states of scheduler and callbacks as they are now, to be restored later.
class KeptStates {
 public:
  explicit KeptStates(const CheckpointedObjects& objects)
      : objects_(objects), scheduler_(objects.scheduler.state()) {
    for (const auto& callback : objects.callbacks) callbacks_.push_back(callback->state());
  }
  void restore() const {
    objects_.scheduler.load(scheduler_);
    for (std::size_t c = 0; c < callbacks_.size(); ++c) objects_.callbacks[c]->load(callbacks_[c]);
  }

 private:
  const CheckpointedObjects& objects_;
  std::map<std::string, double> scheduler_;
  std::vector<Node> callbacks_;
};

}  // namespace

Snapshot take_snapshot(const CheckpointedObjects& objects,
                       const TrainState& state,
                       const Node& config,
                       Snapshot reused) {
  const perf::Scope scope("checkpoint");
  const at::NoGradGuard no_grad;
  Snapshot snapshot;
  std::optional<SwappedIn> swapped(std::in_place, objects.callbacks, objects.task);
  const std::map<std::string, at::Tensor> present = tensors_of(objects);
  snapshot.tensors = room_for(present, std::move(reused.tensors));
  bool is_on_device = false;
  for (const auto& [name, tensor] : present) {
    snapshot.tensors.at(name).copy_(tensor.detach(), /*non_blocking=*/true);
    is_on_device = is_on_device || !tensor.is_cpu();
  }
  if (is_on_device) device::synchronize(objects.task.model().parameters().front().device());
  swapped.reset();

  Node all = to_node(state);
  all.set("scheduler", numbers(objects.scheduler.state()));
  Node& callbacks = all.set("callbacks", Node::make_map());
  for (const auto& callback : objects.callbacks) callbacks.set(callback->name, callback->state());
  all.set("threads", Node::make_integer(at::get_num_threads()));
  Node kept = config;
  const auto trained_on =
      std::ranges::find_if(kept.map, [](const auto& entry) { return entry.first == "trained_on"; });
  if (trained_on != kept.map.end()) {  // no part of a configuration
    snapshot.metadata["trained_on"] = config::to_json(config::to_utf8(trained_on->second));
    kept.map.erase(trained_on);
  }
  snapshot.metadata.merge(std::map<std::string, std::string>{
      {"format", "pt"},
      {"cytra_version", version()},
      {nn::kFormatKey, fmt::to_string(nn::kCheckpointFormat)},
      {"state", config::to_json(config::to_utf8(std::move(all)))},
      {"config", config::to_yaml(config::to_utf8(std::move(kept)))}});
  return snapshot;
}

void write_snapshot(const std::string& path, const Snapshot& snapshot) {
  std::map<std::string, io::TensorView> views;
  for (const auto& [name, tensor] : snapshot.tensors) views[name] = nn::view_of(tensor);
  io::write_safetensors(path, views, snapshot.metadata);
}

TrainState load_checkpoint(const std::string& path,
                           const CheckpointedObjects& objects,
                           bool strict) {
  const io::SafetensorsFile file = nn::open_checkpoint(path, kWeightsHint);
  const Node saved = config::from_utf8(config::parse_json(
      nn::checkpoint_text(file, path, "state", kWeightsHint), path + " (state)"));
  const auto reading = file.reading();
  file.verify();
  const TrainState state = state_of(saved);
  const auto threads = saved.get<int64_t>("threads");
  const Node& callbacks = saved.at("callbacks");
  std::map<std::string, std::map<std::string, at::Tensor>> tensors{
      {"optimizer.", objects.optimizer.state()}};
  if (!objects.scaler.state().empty() && file.tensors().count("scaler.scale") > 0)
    tensors["scaler."] = objects.scaler.state();
  for (const auto& callback : objects.callbacks) {
    if (callbacks.find_direct(callback->name) != nullptr)
      tensors["callback." + callback->name + "."] = callback->tensors();
  }
  for (const auto& [prefix, some] : tensors) expect_all(file, prefix, some, path);
  const KeptStates before(objects);
  try {
    objects.scheduler.load(numbers_of(saved.at("scheduler")));
    for (const auto& callback : objects.callbacks) {
      const Node* node = callbacks.find_direct(callback->name);
      if (node != nullptr) {
        callback->load(*node);
      } else if (!callback->state().map.empty()) {
        log::warn("{}: holds no state of callbacks.{}, which starts afresh", path, callback->name);
      }
    }
    nn::load_state(objects.task.model(),
                   file.tensors(),
                   path,
                   "model.",
                   strict ? nn::Fit::all : nn::Fit::names);
  } catch (...) {
    before.restore();
    throw;
  }
  const at::NoGradGuard no_grad;
  for (const auto& [prefix, some] : tensors) copy_all(file, prefix, some);
  reading.check();
  // model.* are the weights to be used
  for (auto callback = objects.callbacks.rbegin(); callback != objects.callbacks.rend(); ++callback)
    (*callback)->swap_out(objects.task);
  if (threads != at::get_num_threads()) {
    log::warn(
        "{}: trained with {} CPU threads, now {}: sums may round otherwise "
        "(performance.num_threads={} for the very same numbers)",
        path,
        threads,
        at::get_num_threads(),
        threads);
  }
  return state;
}

}  // namespace cytra::training
