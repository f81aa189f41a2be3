#pragma once
// The models of a server. One whose files change is loaded anew beside the one that answers, and
// takes its place when it is ready; Triton calls this a model repository.
// https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/serve/models/served_model.h"

namespace cytra::app {

/// A text that changes when files do, or those below folders, by their sizes and times.
std::string stamp_of(const std::vector<std::string>& paths);

/// Thread: any.
class Repository {
 public:
  /// `config` must outlive this.
  explicit Repository(const ServeConfig& config);
  ~Repository();  // waits for a model that is being loaded

  /// Adds a model and loads it. Throws: as ServedModel().
  void add(const std::string& name, std::vector<std::string> paths);
  /// Starts the thread that loads models from now on. `poll_s`: between two looks at their files;
  /// 0: never.
  void start(double poll_s);

  /// The model of a name; "": the only one. It answers as long as it is held. Throws: HttpError
  /// (404).
  std::shared_ptr<ServedModel> find(const std::string& name) const;
  /// All that answer, by name.
  std::map<std::string, std::shared_ptr<ServedModel>> loaded() const;
  std::vector<std::string> paths_of(const std::string& name) const;

  struct ModelStatus {
    std::string name;
    bool is_loaded = false;
    std::string reason;  // why the newest files do not answer; "": they do
  };
  std::vector<ModelStatus> index() const;  // sorted by name

  /// Called with the error, "" where there is none.
  using Done = std::function<void(const std::string& error)>;
  /// Loads a model anew, from now on from other files where `paths` names some; `done` is called
  /// when it answers, or can't. Throws: HttpError (404).
  void load(const std::string& name, Done done, std::vector<std::string> paths = {});
  /// Takes a model out of service; requests that it has are answered. Throws: HttpError (404).
  void unload(const std::string& name);

 private:
  struct KnownModel {
    std::vector<std::string> paths;
    std::shared_ptr<ServedModel> model;  // null: unloaded
    std::string stamp, seen_stamp;       // its files' as loaded, and at the last look
    std::string name, reason;
  };
  const KnownModel& known(const std::string& name) const;
  std::string load_now(const std::string& name, std::vector<std::string> paths);
  void look();
  void end_retired();
  void run(double poll_s);

  const ServeConfig& config_;
  mutable std::mutex mutex_;
  std::map<std::string, KnownModel> models_;  // guarded by mutex_, as what follows; names stay
  std::vector<std::shared_ptr<ServedModel>> retired_;
  struct Wanted {
    std::string name;
    std::vector<std::string> paths;
    Done done;
  };
  std::deque<Wanted> wanted_;
  bool is_stopping_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace cytra::app
