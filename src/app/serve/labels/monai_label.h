#pragma once
// MONAI Label's REST, for its clients: 3D Slicer, OHIF, QuPath, MITK.
// https://docs.monai.io/projects/label
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "app/serve/http/request_folders.h"
#include "app/serve/models/served_model.h"

namespace cytra::app {

struct ServeState;

/// Images that came for several requests, until they are removed or an hour is over. Thread: any.
class LabelSessions {
 public:
  LabelSessions(int64_t most, int64_t bytes);
  struct Session {
    std::string name, path;  // of the image; a folder for several files
    int64_t bytes = 0;
    std::shared_ptr<RequestFolders::Folder> folder;
    std::chrono::steady_clock::time_point end =
        std::chrono::steady_clock::now() + std::chrono::hours(1);
  };
  /// Returns its name. Throws: HttpError (503) where there is no room.
  std::string add(Session session);
  /// Throws: HttpError (404).
  Session find(const std::string& id) const;
  Session remove(const std::string& id);
  /// Removes the images of those whose hour is over.
  void forget_old();

 private:
  const int64_t most_, bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Session> sessions_;  // guarded by mutex_
};

/// /info/: the server's models, strategies and images.
HttpResponse label_info(const ServeState& state);
/// /infer/{model}: an image of the datastore, of a session, or of the request.
void label_infer(ServeState& state,
                 ServedModel& model,
                 const std::shared_ptr<HttpExchange>& exchange);
/// /datastore/ and below.
HttpResponse label_datastore(ServeState& state, HttpExchange& exchange);
/// /session/ and below.
HttpResponse label_session(ServeState& state, HttpExchange& exchange, const std::string& id);
/// /activelearning/{strategy}: the next image without a final label; {} where there is none.
void label_next(ServeState& state,
                const std::string& strategy,
                const std::shared_ptr<HttpExchange>& exchange);
/// /train/ and below: starts, tells of, ends a training.
HttpResponse label_train(ServeState& state, const HttpExchange& exchange, const std::string& model);

}  // namespace cytra::app
