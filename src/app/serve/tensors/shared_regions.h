#pragma once
// The system-shared-memory extension of the Open Inference Protocol: arrays that pass between
// programs of one machine without the network.
// https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_shared_memory.md
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "app/serve/http/http.h"
#include "base/descriptor.h"

namespace cytra::app {

/// Regions of POSIX shared memory (shm_open) that clients have registered, by name. They are copied
/// from and to, never mapped, so that a client that makes one smaller does no harm. Thread: any.
class SharedRegions {
 public:
  struct Region {
    std::string key;
    int64_t offset = 0, bytes = 0;
  };
  /// `budget` counts the bytes that are copied from regions.
  explicit SharedRegions(RequestBudget& budget) : budget_(budget) {}

  /// Opens a region of this user. Throws: HttpError (400).
  void add(const std::string& name, const Region& region);
  /// Forgets a region; "": all.
  void remove(const std::string& name);
  /// The region of a name, or all (""). Throws: HttpError (400) for an unknown one.
  std::map<std::string, Region> list(const std::string& name) const;
  struct Content {
    std::string bytes;
    std::shared_ptr<const RequestBudget::Share> share;  // which they take
  };
  /// Counts bytes of a request's own: JSON that is read, results. Throws: HttpError (413), (503).
  std::shared_ptr<const RequestBudget::Share> count(int64_t bytes) const;
  /// Copies bytes. Throws: HttpError (400) beyond the region; (413), (503) where they are too many.
  Content read(const std::string& name, int64_t offset, int64_t bytes) const;
  void write(const std::string& name, int64_t offset, const std::string& bytes) const;

 private:
  struct Open {
    Region region;
    std::shared_ptr<const Descriptor> file;
  };
  Open find(const std::string& name, int64_t offset, int64_t bytes) const;
  RequestBudget& budget_;
  mutable std::mutex mutex_;
  std::map<std::string, Open> regions_;  // guarded by mutex_
};

}  // namespace cytra::app
