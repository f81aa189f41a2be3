#include "app/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
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
#include "inference/windows.h"
#include "perf/device.h"
#include "training/precision.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr const char* kWindows = "inference_args.sw_batch_size";  // of the task

/// "key=value" and what it sets.
struct Choice {
  std::string text;
  std::function<void(TrainConfig&)> apply;
};
struct Question {
  std::vector<Choice> choices;  // the first: as it is without asking
  bool is_of_validation = false;
};

Choice layout_choice(bool channels_last) {
  const std::string value = channels_last ? "true" : "false";
  return {"model.channels_last=" + value, [value](TrainConfig& config) {
            config.task.find("model")->set("channels_last", config::parse_yaml(value, "tune"));
          }};
}

/// Whether there is a validation by windows, and their number is that of the group `task`: nobody
/// has asked for another.
bool asks_for_windows(const TrainConfig& config) {
  const Node* count = config.task.find(kWindows);
  return count != nullptr && count->kind == config::Kind::integer &&
         count->integer == inference::SlidingWindowOptions().sw_batch_size && count->origin.file &&
         count->origin.file->find("/task/") != std::string::npos &&
         !config.trainer.limit_val_batches.is_none();
}

/// Of a pass in the validation of this batch: no more than there are.
Question windows_question(const TrainConfig& config, const data::Batch& batch) {
  constexpr int64_t kMost = 32;
  const auto options =
      config::parse<inference::SlidingWindowOptions>(config.task.at("inference_args"));
  Question question{{}, /*is_of_validation=*/true};
  const auto images = batch.tensors.find(config.task.get<std::string>("x_key"));
  if (images == batch.tensors.end()) return question;  // a list of them
  const at::IntArrayRef sizes = images->second.sizes();
  const int64_t windows =
      sizes[0] * inference::layout_windows(sizes.slice(2).vec(), options).windows();
  const auto add = [&](int64_t count) {
    question.choices.push_back(
        {fmt::format("task.{}={}", kWindows, count), [count](TrainConfig& changed) {
           *changed.task.find(kWindows) = Node::make_integer(count);
         }});
  };
  add(options.sw_batch_size);
  for (int64_t count = options.sw_batch_size; count < windows && count < kMost;) add(count *= 2);
  for (int64_t count = std::min(options.sw_batch_size, windows); count > 1;) add(count /= 2);
  return question;
}

std::vector<Question> open_questions(const TrainConfig& config, c10::Device device) {
  std::vector<Question> questions;
  const Node* layout = config.task.find("model.channels_last");
  if (layout == nullptr || layout->is_null())
    questions.push_back({{layout_choice(device.is_cpu()), layout_choice(!device.is_cpu())}});
  if (device.is_cuda() && !config.performance.enable_cudnn_benchmark &&
      config.trainer.deterministic_mode == "false") {
    const auto choice = [](bool use) {
      return Choice{
          fmt::format("performance.enable_cudnn_benchmark={}", use),
          [use](TrainConfig& changed) { changed.performance.enable_cudnn_benchmark = use; }};
    };
    questions.push_back({{choice(false), choice(true)}});
  }
  const int64_t threads = at::get_num_threads();
  if (device.is_cpu() && config.performance.num_threads == 0 && threads > 1) {
    Question question;
    for (int64_t count = threads; count >= 1; count /= 2) {
      question.choices.push_back(
          {fmt::format("performance.num_threads={}", count),
           [count](TrainConfig& changed) { changed.performance.num_threads = count; }});
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

/// The first batch of a split, on the device; none where there is none.
std::optional<data::Batch> first_batch(const Setup& setup, data::Split split) {
  data::DataLoaderSpec spec = loader_spec(setup, split);
  if (spec.items.empty()) return std::nullopt;
  spec.options.num_workers = 0;
  spec.limit = [](int64_t batches) { return std::min<int64_t>(batches, 1); };
  data::DataLoader loader(std::move(spec));
  data::DeviceFeed feed(loader, setup.device);
  feed.start_epoch(0);
  std::optional<data::Batch> batch = feed.next();
  if (batch) training::cast(*batch, setup.precision.parameters);
  return batch;
}

std::string shape_of(const data::Batch& batch) {
  std::string shape;
  for (const auto& [key, images] : batch.tensors)
    shape += fmt::format("{} {} ", key, fmt::join(images.sizes(), "x"));
  return shape;
}

/// Milliseconds, the shortest of some runs behind those that warm up.
double time_runs(c10::Device device, int warm_up, int runs, const std::function<void()>& work) {
  double least = INFINITY;
  for (int i = 0; i < warm_up + runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    perf::synchronize(device);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    if (i >= warm_up) least = std::min(least, ms.count());
  }
  return least;
}

/// Of its forward and backward pass.
double time_pass(const TrainConfig& config, c10::Device device, const data::Batch& batch) {
  const Setup setup(config, device);
  setup.task->model().train();
  return time_runs(device, 1, 3, [&] {
    at::Tensor loss;
    {
      const training::Autocast autocast(setup.precision, device.type());
      loss = setup.task->training_step(batch);
    }
    loss.backward();
    setup.optimizer->zero_grad();
  });
}

/// Of its validation, which may take long: an image warms up by its first windows.
double time_validation(const TrainConfig& config, c10::Device device, const data::Batch& batch) {
  const Setup setup(config, device);
  setup.task->model().eval();
  const c10::InferenceMode inference(config.trainer.inference_mode);
  const at::NoGradGuard no_grad;
  const training::Autocast autocast(setup.precision, device.type());
  return time_runs(device, 0, 2, [&] { setup.task->validation_step(batch); });
}

/// The first batches of training and validation; of the latter none where it is not asked for.
struct FirstBatches {
  std::optional<data::Batch> training, validation;

  FirstBatches(const TrainConfig& config, c10::Device device, bool with_validation) {
    const Setup setup(config, device);
    training = first_batch(setup, data::Split::train);
    if (!training) throw DataError("the training set has no batch");
    if (with_validation) validation = first_batch(setup, data::Split::valid);
  }
  std::string text() const {
    return shape_of(*training) + (validation ? "; " + shape_of(*validation) : "");
  }
};

/// Applies the fastest choice.
Choice answer(const Question& question,
              const FirstBatches& batches,
              c10::Device device,
              TrainConfig& config) {
  constexpr double kGain = 0.97;  // less is noise
  const auto time = [&](const TrainConfig& one) {
    return question.is_of_validation ? time_validation(one, device, *batches.validation)
                                     : time_pass(one, device, *batches.training);
  };
  const double before = time(config);
  double best = before;
  Choice winner = question.choices.front();
  for (std::size_t c = 1; c < question.choices.size(); ++c) {
    TrainConfig other = config;
    question.choices[c].apply(other);
    try {
      const double ms = time(other);
      if (ms >= kGain * best) continue;
      best = ms;
      winner = question.choices[c];
    } catch (const std::exception& error) {
      if (!perf::is_out_of_memory(error)) throw;
    }
  }
  winner.apply(config);
  log::info("model.compile_mode=max-autotune: {}: {:.3g} ms for {}, {:.3g} before",
            winner.text,
            best,
            question.is_of_validation ? "a validation" : "forward and backward pass",
            before);
  return winner;
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

void keep(const std::string& path,
          Node kept,
          const std::string& key,
          const std::vector<Choice>& chosen) {
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
std::vector<Choice> chosen_before(const Node& kept,
                                  const std::string& key,
                                  const std::vector<Question>& all) {
  const Node* texts = kept.find_direct(key);
  std::vector<Choice> chosen;
  if (texts == nullptr || texts->list.size() != all.size()) return {};
  for (std::size_t q = 0; q < all.size(); ++q) {
    for (const Choice& choice : all[q].choices) {
      if (choice.text == texts->list[q].string) chosen.push_back(choice);
    }
  }
  return chosen.size() == all.size() ? chosen : std::vector<Choice>();
}

std::string texts_of(const std::vector<Choice>& chosen) {
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
  std::vector<Question> questions = open_questions(config, device);
  const bool asks_windows = asks_for_windows(config);
  if ((questions.empty() && !asks_windows) ||
      config.data.get<std::string>("batch_size", "") == "AUTO")
    return config;
  const FirstBatches batches(config, device, asks_windows);
  if (batches.validation) questions.push_back(windows_question(config, *batches.validation));
  if (!questions.empty() && questions.back().choices.size() < 2) questions.pop_back();
  if (questions.empty()) return config;
  const std::string path = tuned_file();
  const std::string key = fmt::format("{}; {}; {}; {}",
                                      perf::describe(device),
                                      config.trainer.precision,
                                      batches.text(),
                                      config::to_json(config.task));
  const Node kept = read_kept(path);
  std::vector<Choice> chosen = chosen_before(kept, key, questions);
  if (!chosen.empty()) {
    for (const Choice& choice : chosen) choice.apply(config);
    log::info("model.compile_mode=max-autotune: {}, as kept in {}", texts_of(chosen), path);
    return config;
  }
  for (const Question& question : questions)
    chosen.push_back(answer(question, batches, device, config));
  keep(path, kept, key, chosen);
  return config;
}

}  // namespace cytra::app
