#pragma once
// Files of requests that are being answered.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace cytra::app {

/// A folder of this user alone, in memory (/dev/shm) where there is room, else below $TMPDIR or
/// /tmp. It is removed at the end, and by the next server of this user where this one is killed: it
/// holds a lock as long as it lives. A folder that somebody removes is made anew. Thread: any.
class RequestFolders {
 public:
  /// Makes the folder; `bytes`: that may be needed. Throws: IoError.
  explicit RequestFolders(int64_t bytes);
  ~RequestFolders();

  /// A folder of a request, whose files are removed with the object. Its names come again.
  class Folder {
   public:
    Folder(RequestFolders& folders, int64_t number, std::string path);
    ~Folder();
    Folder& operator=(Folder&&) = delete;
    const std::string& path() const { return path_; }

   private:
    RequestFolders& folders_;
    const int64_t number_;
    const std::string path_;
  };
  /// Throws: IoError.
  std::unique_ptr<Folder> take();
  std::string folder() const;

 private:
  void open();
  const int64_t bytes_;
  mutable std::mutex mutex_;
  std::string folder_;  // guarded by mutex_, as what follows
  Descriptor lock_;     // of its file .lock
  std::vector<int64_t> free_;
  int64_t made_ = 0;
};

}  // namespace cytra::app
