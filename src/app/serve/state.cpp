#include "app/serve/state.h"

#include <utility>

namespace cytra::app {

ServeState::ServeState(const ServeConfig& given, std::string secret)
    : config(given),
      token(std::move(secret)),
      folders(4 * given.limits.requests_mb * 1'000'000),
      budget(given.limits.requests, given.limits.requests_mb * 1'000'000),
      sessions(given.limits.requests, given.limits.requests_mb * 1'000'000),
      stacks(given.limits.requests_mb * 1'000'000 / 4) {
  models.emplace(given);
  trainings = given.trainings.value_or(given.datastore ? *given.datastore + "/trainings" : "");
  if (!given.datastore) return;
  datastore.emplace(*given.datastore);
  training.emplace(given, *datastore, *models, trainings);
  uncertainty.emplace(*datastore, *models, folders);
}

}  // namespace cytra::app
