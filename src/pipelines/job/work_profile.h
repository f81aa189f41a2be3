#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace cytra::nn {
struct Model;
}

namespace cytra::pipelines {

/// A profile of the thread that computes, as trainer.profiler makes it of a training: `kind` is one
/// of profile_names(). Made, called and ended in that thread. Writes into `folder`.
class WorkProfile {
 public:
  /// `model`: its weights are in memory already; null: none is.
  WorkProfile(const std::string& kind,
              c10::Device device,
              std::string folder,
              const nn::Model* model);
  ~WorkProfile();
  WorkProfile(const WorkProfile&) = delete;
  WorkProfile& operator=(const WorkProfile&) = delete;
  /// Counts a batch of images that is computed. Of operations the second to fourth are recorded:
  /// the first one prepares things.
  void end_batch();
  /// Writes the files and logs the table. Throws: as AtomicFile.
  void finish();

 private:
  struct Kind;
  struct Memory;
  struct Transfers;
  struct Operations;
  std::unique_ptr<Kind> kind_;
};

/// memory, pytorch, transfers
const std::vector<std::string>& profile_names();
/// A profile in the folder `profiler` of a run (of further processes: profiler.rank1, ...); null
/// where no `kind` is given.
std::unique_ptr<WorkProfile> make_profile(const std::optional<std::string>& kind,
                                          c10::Device device,
                                          const std::string& run_folder,
                                          int64_t rank = 0,
                                          const nn::Model* model = nullptr);

}  // namespace cytra::pipelines
