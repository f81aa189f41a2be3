#include "app/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/train_data.h"
#include "base/cache_folder.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/json.h"
#include "data/device_feed.h"
#include "perf/device.h"
#include "training/precision.h"

namespace cytra::app {
namespace {

using config::Node;

/// "key=value" and what it sets.
struct Choice {
  std::string text;
  std::function<void(TrainConfig&)> apply;
};
using Question = std::vector<Choice>;  // the first: as it is without asking

Choice layout_choice(bool channels_last) {
  const std::string value = channels_last ? "true" : "false";
  return {"model.channels_last=" + value, [value](TrainConfig& config) {
            config.task.find("model")->set("channels_last", config::parse_yaml(value, "tune"));
          }};
}

std::vector<Question> open_questions(const TrainConfig& config, c10::Device device) {
  std::vector<Question> questions;
  const Node* layout = config.task.find("model.channels_last");
  if (layout == nullptr || layout->is_null())
    questions.push_back({layout_choice(device.is_cpu()), layout_choice(!device.is_cpu())});
  if (device.is_cuda() && !config.performance.enable_cudnn_benchmark &&
      config.trainer.deterministic_mode == "false") {
    const auto choice = [](bool use) {
      return Choice{
          fmt::format("performance.enable_cudnn_benchmark={}", use),
          [use](TrainConfig& changed) { changed.performance.enable_cudnn_benchmark = use; }};
    };
    questions.push_back({choice(false), choice(true)});
  }
  const int64_t threads = at::get_num_threads();
  if (device.is_cpu() && config.performance.num_threads == 0 && threads > 1) {
    Question question;
    for (int64_t count = threads; count >= 1; count /= 2) {
      question.push_back(
          {fmt::format("performance.num_threads={}", count),
           [count](TrainConfig& changed) { changed.performance.num_threads = count; }});
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

/// The first batch of a training, on the device.
data::Batch first_batch(const TrainConfig& config, c10::Device device) {
  const Setup setup(config, device);
  data::DataLoaderSpec spec = loader_spec(setup, data::Split::train);
  spec.options.num_workers = 0;
  spec.limit = [](int64_t batches) { return std::min<int64_t>(batches, 1); };
  data::DataLoader loader(std::move(spec));
  data::DeviceFeed feed(loader, device);
  feed.start_epoch(0);
  std::optional<data::Batch> batch = feed.next();
  if (!batch) throw DataError("the training set has no batch");
  training::cast(*batch, setup.precision.parameters);
  return std::move(*batch);
}

std::string shape_of(const data::Batch& batch) {
  std::string shape;
  for (const auto& [key, images] : batch.tensors)
    shape += fmt::format("{} {} ", key, fmt::join(images.sizes(), "x"));
  return shape;
}

/// Milliseconds of its forward and backward pass.
double time_pass(const TrainConfig& config, c10::Device device, const data::Batch& batch) {
  constexpr int kWarmUp = 1, kRepeats = 3;
  const Setup setup(config, device);
  setup.task->model().train();
  double least = INFINITY;
  for (int i = 0; i < kWarmUp + kRepeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    at::Tensor loss;
    {
      const training::Autocast autocast(setup.precision, device.type());
      loss = setup.task->training_step(batch);
    }
    loss.backward();
    setup.optimizer->zero_grad();
    perf::synchronize(device);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    if (i >= kWarmUp) least = std::min(least, ms.count());
  }
  return least;
}

std::string tuned_file() {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/tuned.json";
}

/// {"version": ..., key: [choices]}; empty where there is none that this program wrote.
Node read_kept(const std::string& path) {
  Node fresh = Node::make_map();
  fresh.set("version", Node::make_string(version()));
  if (path.empty()) return fresh;
  try {
    const Node kept = config::parse_json(read_file(path), path);
    return kept.get<std::string>("version", "") == version() ? kept : fresh;
  } catch (const Error&) {  // none, or not ours: it is written anew
    return fresh;
  }
}

void keep(const std::string& path, Node kept, const std::string& key, const Question& chosen) {
  Node texts;
  texts.kind = config::Kind::list;
  for (const Choice& choice : chosen) texts.list.push_back(Node::make_string(choice.text));
  kept.set(key, std::move(texts));
  if (path.empty()) return;
  try {
    make_folders(path.substr(0, path.rfind('/')));
    write_file(path, config::to_json(kept));
  } catch (const Error& error) {
    log::debug("model.compile_mode=max-autotune: the choice is not kept: {}", error.what());
  }
}

/// The choices that were kept, one for each question; empty: none, or of other questions.
Question chosen_before(const Node& kept, const std::string& key, const std::vector<Question>& all) {
  const Node* texts = kept.find_direct(key);
  Question chosen;
  if (texts == nullptr || texts->list.size() != all.size()) return {};
  for (std::size_t q = 0; q < all.size(); ++q) {
    for (const Choice& choice : all[q]) {
      if (choice.text == texts->list[q].string) chosen.push_back(choice);
    }
  }
  return chosen.size() == all.size() ? chosen : Question();
}

std::string texts_of(const Question& chosen) {
  std::vector<std::string> texts;
  for (const Choice& choice : chosen) texts.push_back(choice.text);
  return join(texts, " ");
}

}  // namespace

TrainConfig tuned(TrainConfig config, c10::Device device) {
  const Node* model = config.task.find("model");
  if (model == nullptr || !model->is_map() || !model->get<bool>("compile_model", false) ||
      model->get<std::string>("compile_mode", "default") != "max-autotune")
    return config;
  const std::vector<Question> questions = open_questions(config, device);
  if (questions.empty() || config.data.get<std::string>("batch_size", "") == "AUTO") return config;
  const data::Batch batch = first_batch(config, device);
  const std::string path = tuned_file();
  const std::string key = fmt::format("{}; {}; {}; {}",
                                      perf::describe(device),
                                      config.trainer.precision,
                                      shape_of(batch),
                                      config::to_json(config.task));
  const Node kept = read_kept(path);
  if (const Question chosen = chosen_before(kept, key, questions); !chosen.empty()) {
    for (const Choice& choice : chosen) choice.apply(config);
    log::info("model.compile_mode=max-autotune: {}, as kept in {}", texts_of(chosen), path);
    return config;
  }
  constexpr double kGain = 0.97;  // less is noise
  const double first = time_pass(config, device, batch);
  double best = first;
  Question chosen;
  for (const Question& question : questions) {
    const Choice* winner = &question.front();
    for (std::size_t c = 1; c < question.size(); ++c) {
      TrainConfig other = config;
      question[c].apply(other);
      try {
        const double ms = time_pass(other, device, batch);
        if (ms >= kGain * best) continue;
        best = ms;
        winner = &question[c];
      } catch (const std::exception& error) {
        if (!perf::is_out_of_memory(error)) throw;
      }
    }
    winner->apply(config);
    chosen.push_back(*winner);
  }
  keep(path, kept, key, chosen);
  log::info(
      "model.compile_mode=max-autotune: {}: {:.3g} ms for forward and backward pass, {:.3g} before",
      texts_of(chosen),
      best,
      first);
  return config;
}

}  // namespace cytra::app
