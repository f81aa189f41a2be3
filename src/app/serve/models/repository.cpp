#include "app/serve/models/repository.h"

#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/strings.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostFiles = 1000;  // those of a folder that are looked at

}  // namespace

std::string stamp_of(const std::vector<std::string>& paths) {
  std::string stamp;
  const auto add = [&](const std::string& path) {
    struct stat state {};
    if (::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode))
      stamp += fmt::format("{} {} {}.{} {};",
                           path,
                           state.st_size,
                           state.st_mtim.tv_sec,
                           state.st_mtim.tv_nsec,
                           state.st_ino);
  };
  for (const std::string& path : paths) {
    add(path);
    std::error_code ignored;
    int64_t files = 0;
    for (fs::recursive_directory_iterator entry(path, ignored), last;
         entry != last && files < kMostFiles;
         entry.increment(ignored), ++files)
      add(entry->path().string());
  }
  return stamp;
}

Repository::Repository(const ServeConfig& config) : config_(config) {}

Repository::~Repository() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Repository::add(const std::string& name, std::vector<std::string> paths) {
  KnownModel model;
  model.stamp = model.seen_stamp = stamp_of(paths);
  model.model = std::make_shared<ServedModel>(name, config_, paths);
  model.paths = std::move(paths);
  model.name = name;
  const std::lock_guard lock(mutex_);
  models_.emplace(name, std::move(model));
}

void Repository::start(double poll_s) {
  thread_ = std::thread([this, poll_s] { run(poll_s); });
}

const Repository::KnownModel& Repository::known(const std::string& name) const {
  if (name.empty() && models_.size() == 1) return models_.begin()->second;
  const auto found = models_.find(name);
  if (found != models_.end()) return found->second;
  const std::vector<std::string> names = keys_of(models_);
  throw HttpError(
      404,
      name.empty() ? fmt::format("there are several models, expected /predict/{{model}} with "
                                 "one of {}",
                                 join(names, ", "))
                   : fmt::format("{}: no such model.{}", printable(name), suggestion(name, names)));
}

std::shared_ptr<ServedModel> Repository::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const KnownModel& own = known(name);
  if (own.model) return own.model;
  throw HttpError(
      404, "{}: is not loaded; POST /v2/repository/models/{}/load loads it", own.name, own.name);
}

std::map<std::string, std::shared_ptr<ServedModel>> Repository::loaded() const {
  std::map<std::string, std::shared_ptr<ServedModel>> loaded;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, own] : models_)
    if (own.model) loaded.emplace(name, own.model);
  return loaded;
}

std::vector<std::string> Repository::paths_of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return known(name).paths;
}

std::vector<Repository::ModelStatus> Repository::index() const {
  std::vector<ModelStatus> index;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, own] : models_) index.push_back({name, own.model != nullptr, own.reason});
  return index;
}

void Repository::load(const std::string& name, Done done, std::vector<std::string> paths) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back({known(name).name, std::move(paths), std::move(done)});
  }
  changed_.notify_all();
}

void Repository::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  KnownModel& own = models_.at(known(name).name);
  if (own.model) retired_.push_back(std::move(own.model));
  own.model = nullptr;
  own.reason = "unloaded";
}

std::string Repository::load_now(const std::string& name, std::vector<std::string> paths) {
  const bool is_other = !paths.empty();
  if (!is_other) paths = paths_of(name);
  const std::string stamp = stamp_of(paths);
  std::shared_ptr<ServedModel> made;
  std::string error;
  try {
    made = std::make_shared<ServedModel>(name, config_, paths);
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  const std::lock_guard lock(mutex_);
  KnownModel& own = models_.at(name);
  if (error.empty() || !is_other) own.stamp = own.seen_stamp = stamp;
  own.reason = error;
  if (error.empty()) {
    own.paths = std::move(paths);
    if (own.model) retired_.push_back(std::move(own.model));
    own.model = std::move(made);
    log::info("{}: {} is loaded, and answers from now on", name, join(own.paths, ", "));
  } else {
    log::warn("{}: can't be loaded: {}; {}",
              name,
              error,
              own.model ? "the one before goes on to answer" : "it does not answer");
  }
  return error;
}

/// Loads models whose files have changed, and are not being written any more: they are as at the
/// last look.
void Repository::look() {
  std::vector<std::pair<std::string, std::vector<std::string>>> watched;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, own] : models_)
      if (own.model) watched.emplace_back(name, own.paths);
  }
  for (const auto& [name, paths] : watched) {
    const std::string stamp = stamp_of(paths);
    bool is_new = false;
    {
      const std::lock_guard lock(mutex_);
      KnownModel& own = models_.at(name);
      is_new = stamp != own.stamp && stamp == own.seen_stamp && !stamp.empty();
      own.seen_stamp = stamp;
    }
    if (is_new) load_now(name, {});
  }
}

/// Ends models that nobody holds, and that have no request left.
void Repository::end_retired() {
  std::vector<std::shared_ptr<ServedModel>> ended;
  const std::lock_guard lock(mutex_);
  for (auto& model : retired_)
    if (model.use_count() == 1 && model->requests() == 0) ended.push_back(std::move(model));
  std::erase(retired_, nullptr);
}

void Repository::run(double poll_s) {
  using Clock = std::chrono::steady_clock;
  const auto poll =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(poll_s));
  auto next = Clock::now() + poll;
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    changed_.wait_for(
        lock, std::chrono::milliseconds(200), [this] { return is_stopping_ || !wanted_.empty(); });
    while (!is_stopping_ && !wanted_.empty()) {
      const Wanted own = std::move(wanted_.front());
      wanted_.pop_front();
      lock.unlock();
      own.done(load_now(own.name, own.paths));
      lock.lock();
    }
    if (is_stopping_) return;
    lock.unlock();
    end_retired();
    if (poll_s > 0 && Clock::now() >= next) {
      look();
      next = Clock::now() + poll;
    }
    lock.lock();
  }
}

}  // namespace cytra::app
