#include "app/serve/labels/label_training.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "inference/predictor/windowed_model.h"
#include "io/csv.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;
using config::Node;

constexpr std::size_t kKeptDetails = 20;  // messages

/// A number of a training that a client may set. `alias`: MONAI Label's name.
struct TrainKey {
  const char *key, *alias;
  double low, high;
  bool is_whole;
};
constexpr TrainKey kTrainKeys[]{{"trainer.max_epochs", "max_epochs", 1, 1e6, true},
                                {"trainer.max_steps", "", 1, 1e9, true},
                                {"data.batch_size", "train_batch_size", 1, 4096, true},
                                {"optimizer.lr", "", 0, 1e3, false},
                                {"seed", "", 0, 1e15, true}};

/// Sets a value below maps that are made where they are not there.
void set_below(Node& node, const std::string& key, Node value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    node.set(key, std::move(value));
    return;
  }
  Node* child = node.find_direct(key.substr(0, dot));
  if (child == nullptr || !child->is_map()) child = &node.set(key.substr(0, dot), Node::make_map());
  set_below(*child, key.substr(dot + 1), std::move(value));
}

void apply_settings(const Json& settings, Node& config) {
  std::vector<std::string> known;
  for (const TrainKey& key : kTrainKeys) known.emplace_back(key.key);
  for (const auto& [name, value] : settings.items()) {
    const TrainKey* found = nullptr;
    for (const TrainKey& key : kTrainKeys)
      if (name == key.key || (name == key.alias && *key.alias != '\0')) found = &key;
    if (found == nullptr) {
      if (name.find('.') == std::string::npos) continue;  // clients send what they have
      throw HttpError(400, printable(name, 60) + ": is not set here." + suggestion(name, known));
    }
    const double number = value.is_number() ? value.get<double>() : NAN;
    if (!(number >= found->low && number <= found->high) ||
        (found->is_whole && number != std::floor(number)))
      throw HttpError(400,
                      "{}: expected a {}number from {} to {}",
                      name,
                      found->is_whole ? "whole " : "",
                      found->low,
                      found->high);
    set_below(config,
              found->key,
              found->is_whole ? Node::make_integer(static_cast<int64_t>(number))
                              : Node::make_real(number));
    // A limit of its training before is not meant where another one is given.
    if (std::string_view(found->key) == "trainer.max_epochs" &&
        !settings.contains("trainer.max_steps"))
      set_below(config, "trainer.max_steps", Node::make_integer(-1));
  }
}

}  // namespace

LabelTraining::LabelTraining(const ServeConfig& config,
                             const Datastore& store,
                             Repository& models,
                             std::string folder)
    : config_(config), store_(store), models_(models), folder_(std::move(folder)), thread_([this] {
        run();
      }) {}

LabelTraining::~LabelTraining() {
  end();
}

void LabelTraining::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Json LabelTraining::keys() {
  Json keys = Json::object();
  for (const TrainKey& key : kTrainKeys) keys[key.key] = nullptr;
  return keys;
}

/// Writes the tables of images and the configuration.
void LabelTraining::prepare(Task& task, const Json& settings) const {
  const std::vector<std::string> paths = models_.paths_of(task.model);
  if (paths.size() != 1)
    throw HttpError(422,
                    task.model + ": is the mean of several checkpoints; expected one to train");
  const fs::path checkpoint = fs::absolute(paths.front());
  const fs::path written = checkpoint.parent_path().parent_path() / ".hydra/config.yaml";
  if (!path_exists(written))
    throw HttpError(422,
                    task.model +
                        ": expected a checkpoint in the folder of its training, whose "
                        ".hydra/config.yaml says how to train");
  const std::shared_ptr<ServedModel> model = models_.find(task.model);
  const inference::WindowedModel& windowed = model->predictor().windowed();
  // By their names, so that an image stays on its side when labels are added: every fifth
  // validates.
  std::vector<std::vector<std::string>> train, valid;
  for (const auto& [id, paths] : store_.labelled()) {
    auto& side = std::hash<std::string>()(id) % 5 == 0 ? valid : train;
    side.push_back({fs::absolute(paths.first).string(), fs::absolute(paths.second).string()});
  }
  task.images = static_cast<int64_t>(train.size() + valid.size());
  if (task.images == 0)
    throw HttpError(422, "no image has a final label; PUT /datastore/label saves one");
  const bool is_shared = train.empty() || valid.empty();
  if (is_shared) {
    train.insert(train.end(), valid.begin(), valid.end());
    valid = train;
  }
  const std::vector<std::string> columns{windowed.x_key, windowed.y_key};
  make_folders(task.program_config);
  io::write_table(task.program_config + "/train.csv", columns, train);
  io::write_table(task.program_config + "/valid.csv", columns, valid);

  Node config = config::load_yaml(written.string());
  Node data = Node::make_map();
  data.set("_target_", Node::make_string("DataframeDatamodule"));
  data.set("path", Node::make_string(fs::absolute(task.program_config).string()));
  data.set("columns", Node::make_list(columns));
  data.set("allow_shared", Node::make_boolean(is_shared));
  for (const char* key : {"transforms",
                          "batch_size",
                          "num_workers",
                          "axes",
                          "on_mismatch",
                          "fill_nan",
                          "collate",
                          "drop_last",
                          "pin_memory",
                          "ram_cache_gb"})
    if (const Node* own = config.find("data." + std::string(key))) data.set(key, *own);
  config.set("data", std::move(data));
  const auto set = [&](const char* key, Node value) { set_below(config, key, std::move(value)); };
  set("paths.output_dir", Node::make_string(fs::absolute(task.folder).string()));
  set("checkpoint.ckpt_path", Node::make_string(checkpoint.string()));
  set("checkpoint.weights_only", Node::make_boolean(true));
  set("checkpoint.autoresume", Node::make_boolean(false));
  set("trainer.accelerator", Node::make_string(config_.trainer.accelerator));
  apply_settings(settings, config);
  write_file(task.program_config + "/config.yaml", config::to_yaml(config));
}

Json LabelTraining::start(const std::string& model, const Json& settings) {
  Task task;
  task.model = models_.find(model)->name();
  task.begin_s = std::time(nullptr);
  const std::lock_guard lock(mutex_);
  if (is_ending_) throw HttpError(503, "the server ends");
  if (task_ && task_->state == "RUNNING")
    throw HttpError(409, "a training runs already; DELETE /train/ ends it");
  const std::string name = task.model + format_time("_%Y-%m-%d_%H-%M-%S");
  task.folder = folder_ + "/" + name;
  for (int64_t k = 2; fs::exists(task.folder); ++k)
    task.folder = fmt::format("{}/{}_{}", folder_, name, k);
  task.program_config = folder_ + "/.data/" + fs::path(task.folder).filename().string();
  prepare(task, settings);
  task_ = std::move(task);
  changed_.notify_all();
  return told();
}

Json LabelTraining::told() const {
  Json told{{"id", fs::path(task_->folder).filename().string()},
            {"model", task_->model},
            {"status", task_->state},
            {"start_ts", task_->begin_s},
            {"images", task_->images},
            {"details", task_->details}};
  if (task_->end_s > 0) told["end_ts"] = task_->end_s;
  if (!task_->progress.is_null()) told["progress"] = task_->progress;
  if (!task_->error.empty()) told["error"] = task_->error;
  return told;
}

Json LabelTraining::status(bool must_run) const {
  const std::lock_guard lock(mutex_);
  if (!task_) throw HttpError(404, "there was no training; POST /train/{model} starts one");
  if (must_run && task_->state != "RUNNING") throw HttpError(404, "no training runs");
  return told();
}

Json LabelTraining::stop() {
  const std::lock_guard lock(mutex_);
  if (!task_ || task_->state != "RUNNING") throw HttpError(404, "no training runs");
  task_->is_stopped = true;
  changed_.notify_all();
  return told();
}

void LabelTraining::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || (task_ && task_->is_wanted); });
    if (is_ending_) return;
    task_->is_wanted = false;
    std::string error;
    try {
      train(lock);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    if (!lock.owns_lock()) lock.lock();
    task_->end_s = std::time(nullptr);
    if (!error.empty()) {
      task_->error = error;
      task_->state = "ERROR";
      log::warn("the training of {} failed: {}", task_->model, error);
    }
  }
}

/// Runs the program of task_. `lock` is held at the beginning and, without an error, at the end.
void LabelTraining::train(std::unique_lock<std::mutex>& lock) {
  const Task task = *task_;
  lock.unlock();
  const std::string program = program_folder() + "/train";
  cli::mcp::Job job({program,
                     {program,
                      "--config-path=" + task.program_config,
                      "--config-name=config",
                      "--json",
                      "--json-messages"},
                     {}});
  log::info("{}: is trained on {} labelled images in {}", task.model, task.images, task.folder);
  lock.lock();
  while (true) {
    job.read();
    Json details = Json::array();
    const auto& messages = job.messages();
    for (std::size_t i = messages.size() - std::min(messages.size(), kKeptDetails);
         i < messages.size();
         ++i)
      details.push_back(messages[i].text);
    task_->details = std::move(details);
    if (job.progress())
      task_->progress = {{"done", job.progress()->done},
                         {"total", job.progress()->total},
                         {"note", job.progress()->note}};
    if (job.end()) break;
    if (task_->is_stopped || is_ending_) job.stop();
    changed_.wait_for(lock, std::chrono::milliseconds(200));
  }
  if (job.was_stopped()) {
    task_->state = "CANCELED";
    return;
  }
  if (job.end()->exit_code != 0) {
    std::string why;
    for (const auto& message : job.messages())
      if (message.level == "error") why = message.text;
    throw IoError(why.empty() ? "train " + job.end()->text() : why);
  }
  std::string best = task.folder + "/checkpoints/best.ckpt";
  if (!path_exists(best)) best = task.folder + "/checkpoints/last.ckpt";
  // What is told may come after this object's end, or never.
  const auto told = std::make_shared<std::promise<std::string>>();
  std::future<std::string> answer = told->get_future();
  models_.load(task.model, [told](const std::string& error) { told->set_value(error); }, {best});
  while (answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready && !is_ending_)
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  if (!is_ending_) task_->error = answer.get();
  task_->state = task_->error.empty() ? "DONE" : "ERROR";
}

}  // namespace cytra::app
