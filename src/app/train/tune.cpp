#include "app/train/tune.h"

#include <algorithm>
#include <functional>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/json.h"
#include "device/backend.h"
#include "device/device.h"
#include "device/error.h"
#include "device/fast_precision.h"
#include "inference/windows/windows.h"
#include "perf/machine_load.h"
#include "perf/measure.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr const char* kTuning = "model.compile_mode=max-autotune:";
constexpr const char* kWindowBatch = "inference_args.sw_batch_size";  // of the task

/// "key=value" and what it sets.
struct Choice {
  std::string text;
  std::function<void(TrainConfig&)> apply;
};
struct Question {
  std::vector<Choice> choices;  // the first: as it is without asking
  bool is_of_validation = false;
};

std::string texts_of(const std::vector<Choice>& chosen) {
  std::vector<std::string> texts;
  for (const Choice& choice : chosen) texts.push_back(choice.text);
  return join(texts, " ");
}

Choice layout_choice(bool channels_last) {
  return {fmt::format("model.channels_last={}", channels_last), [=](TrainConfig& config) {
            config.task.find("model")->set("channels_last", Node::make_boolean(channels_last));
          }};
}

/// Whether there is a validation by windows, and the user has not set a number of them.
bool asks_for_windows(const TrainConfig& config) {
  const Node* count = config.task.find(kWindowBatch);
  return count != nullptr && count->kind == config::Kind::integer &&
         count->integer == inference::SlidingWindowOptions().sw_batch_size && count->origin.file &&
         !count->is_set_by_user() && !config.trainer.limit_val_batches.is_none();
}

/// The question how many windows a pass has in the validation of this batch: no more than the
/// batch has.
Question windows_question(const TrainConfig& config, const data::Batch& batch) {
  constexpr int64_t kMost = 32;
  const auto options =
      config::parse<inference::SlidingWindowOptions>(config.task.at("inference_args"));
  Question question{{}, /*is_of_validation=*/true};
  const auto images = batch.tensors.find(config.task.get<std::string>("x_key"));
  if (images == batch.tensors.end()) return question;  // the images are a list
  const at::IntArrayRef sizes = images->second.sizes();
  const int64_t windows =
      sizes[0] * inference::layout_windows(sizes.slice(2).vec(), options).windows();
  const auto add = [&](int64_t count) {
    question.choices.push_back(
        {fmt::format("task.{}={}", kWindowBatch, count), [count](TrainConfig& changed) {
           *changed.task.find(kWindowBatch) = Node::make_integer(count);
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
  const bool usual_layout =
      device.is_cpu() || device::uses_tensor_cores(config.trainer.precision, device);
  if (layout == nullptr || layout->is_null())
    questions.push_back({{layout_choice(usual_layout), layout_choice(!usual_layout)}});
  if (device::backend_of(device).traits.searches_algorithms &&
      !config.performance.enable_cudnn_benchmark && config.trainer.deterministic_mode == "false") {
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

/// The timed pass of a configuration that a question is about.
TimedPass pass_of(const Question& question,
                  const FirstBatches& batches,
                  const TrainConfig& config,
                  const MakePass& make) {
  const bool of_validation = question.is_of_validation;
  return make(config, of_validation ? *batches.validation : *batches.training, of_validation);
}

/// Finds and applies the fastest choice: the first one, unless another is faster beyond the noise.
Choice answer(const Question& question,
              const FirstBatches& batches,
              const MakePass& make,
              TrainConfig& config) {
  Choice winner = question.choices.front();
  winner.apply(config);
  TimedPass best = pass_of(question, batches, config, make);
  double ms = 1e3 * best(), gain = 1;
  for (std::size_t c = 1; c < question.choices.size(); ++c) {
    TrainConfig other = config;
    question.choices[c].apply(other);
    TimedPass pass;
    double last = 0;
    const auto verdict = device::if_it_fits([&] {
      pass = pass_of(question, batches, other, make);
      return perf::time_in_turn(best, [&] { return last = pass(); });
    });
    if (verdict) log::debug("{} {}: {}", kTuning, question.choices[c].text, verdict->text());
    if (!verdict || !verdict->is_gain) continue;
    ms = 1e3 * last;
    gain *= verdict->ratio;
    winner = question.choices[c];
    config = std::move(other);
    best = std::move(pass);
  }
  log::info("{} {}: {:.3g} ms for {}, {}",
            kTuning,
            winner.text,
            ms,
            question.is_of_validation ? "a validation" : "forward and backward pass",
            gain > 1 ? fmt::format("{:.2f} times as fast as before", gain)
                     : "and nothing that was tried is faster");
  return winner;
}

/// Whether the choices of an earlier training are still not slower than no choices, on this
/// machine now.
bool still_hold(const std::vector<Question>& questions,
                const std::vector<Choice>& chosen,
                const FirstBatches& batches,
                const MakePass& make,
                const TrainConfig& config) {
  for (const bool of_validation : {false, true}) {
    TrainConfig without = config, with = config;
    const Question* changed = nullptr;
    for (std::size_t q = 0; q < questions.size(); ++q) {
      if (questions[q].is_of_validation != of_validation) continue;
      questions[q].choices.front().apply(without);
      chosen[q].apply(with);
      if (chosen[q].text != questions[q].choices.front().text) changed = &questions[q];
    }
    if (changed == nullptr) continue;
    const auto again = device::if_it_fits([&] {
      return perf::time_again(pass_of(*changed, batches, without, make),
                              pass_of(*changed, batches, with, make));
    });
    if (again && perf::holds(*again)) continue;
    log::info("{} the earlier choice is dropped ({}); chosen now: {}",
              kTuning,
              again ? again->text() : "it does not fit into memory",
              texts_of(chosen));
    return false;
  }
  return true;
}

std::string tuned_file() {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/tuned.json";
}

/// Reads the kept choices: {"version": ..., key: [choices]}; empty where there is no file that
/// this program wrote.
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
  Node texts = Node::make_list();
  for (const Choice& choice : chosen) texts.list.push_back(Node::make_string(choice.text));
  kept.set(key, std::move(texts));
  if (path.empty()) return;
  try {
    make_folders(path.substr(0, path.rfind('/')));
    write_file(path, config::to_json(kept));
  } catch (const Error& error) {
    log::debug("{} the choice is not kept: {}", kTuning, error.what());
  }
}

/// The choices that were kept, one for each question; empty where there are none, or for other
/// questions.
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

}  // namespace

TrainConfig tuned(TrainConfig config, c10::Device device, MakePass make) {
  const Node* model = config.task.find("model");
  if (model == nullptr || !model->is_map() || !model->get<bool>("compile_model", false) ||
      model->get<std::string>("compile_mode", "default") != "max-autotune")
    return config;
  device::apply(config.performance, device);
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
                                      device::describe(device),
                                      config.trainer.precision,
                                      batches.text(),
                                      config::to_json(config.task));
  const Node kept = read_kept(path);
  std::vector<Choice> chosen = chosen_before(kept, key, questions);
  if (!make) make = real_passes(device);
  const perf::MachineLoad load;
  if (!chosen.empty() && still_hold(questions, chosen, batches, make, config)) {
    for (const Choice& choice : chosen) choice.apply(config);
    log::info("{} {}, as kept in {}", kTuning, texts_of(chosen), path);
    return config;
  }
  chosen.clear();
  for (const Question& question : questions)
    chosen.push_back(answer(question, batches, make, config));
  load.report("model.compile_mode=max-autotune");
  keep(path, kept, key, chosen);
  return config;
}

}  // namespace cytra::app
