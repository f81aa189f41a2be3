#pragma once
// What a server holds.
#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "app/serve/http/request_folders.h"
#include "app/serve/http/request_progress.h"
#include "app/serve/labels/label_training.h"
#include "app/serve/labels/monai_label.h"
#include "app/serve/labels/uncertainty.h"
#include "app/serve/models/repository.h"
#include "app/serve/models/served_model.h"
#include "app/serve/page/preview.h"
#include "app/serve/tensors/shared_regions.h"

namespace cytra::app {

/// What all routes share.
struct ServeState {
  ServeState(const ServeConfig& given, std::string secret);
  const ServeConfig& config;
  const std::string token;  // "": none
  RequestFolders folders;
  RequestBudget budget;
  ProgressBoard progress;
  SharedRegions regions{budget};
  LabelSessions sessions;
  ShownStacks stacks;
  std::optional<Datastore> datastore;
  std::optional<ThreadPool> pool{2};  // begins work, so that the server's thread never waits
  std::optional<Repository> models;
  std::string trainings;                   // their folder; "": none
  std::optional<LabelTraining> training;   // of the datastore
  std::optional<Uncertainty> uncertainty;  // the same
  std::atomic<bool> is_draining{false};
  std::function<int64_t()> connections;  // open now

  /// The model of a name; "": the only one. Throws: HttpError (404).
  std::shared_ptr<ServedModel> model(const std::string& name) const { return models->find(name); }
};

}  // namespace cytra::app
