#pragma once
// Starts the processes of a run: by torchrun, by Slurm, or by the first process.
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <sys/types.h>

#include "cli/program.h"
#include "training/processes/processes.h"
#include "training/trainer_options.h"

namespace cytra::app {

/// The place of this process in the run, by the environment of torchrun (RANK, WORLD_SIZE, ...) or
/// srun (SLURM_PROCID, SLURM_NTASKS, ...); else the first of trainer.devices. Throws: ConfigError
/// when environment and options contradict each other.
training::ProcessPlace place_of(const training::TrainerOptions& options, c10::Device device);
/// The number of the GPU that a process uses, of the `gpus` that it sees: the one that was chosen
/// for it, else its own rank on the machine, or the only one, since Slurm's --gpus-per-task=1 shows
/// each task another. Throws: ConfigError when there are too few.
int64_t gpu_of(const training::ProcessPlace& place, int64_t gpus);
/// The device of this process among several, which becomes the current one.
c10::Device device_of(const training::ProcessPlace& place, c10::Device device);
/// Whether the first process has to start the others.
bool starts_others(const training::ProcessPlace& place);
/// The first host of Slurm's list: "gpu[03-07,11],cpu1" -> "gpu03".
std::string first_host(const std::string& nodes);
/// CPU threads for each of the processes on this machine.
int threads_of(const training::ProcessPlace& place);

/// The values, besides the configuration, that all processes must share with the first one.
struct CommonPaths {
  std::string folder, checkpoint;
};
std::string text_of(const CommonPaths& common, const cli::Run& run);
/// Takes over the first process's values and its configuration, whose times and folders are those
/// of the run.
CommonPaths take_common(const std::string& text, cli::Run& run);

/// The processes that the first one starts: this program with the same command line, and torchrun's
/// variables. They never outlive it.
class Children {
 public:
  Children() = default;
  /// Waits some seconds for all processes to end, then ends them.
  ~Children();
  void start(const training::ProcessPlace& place);
  /// How a process ended early: "rank 1 was ended by signal 9 (Killed)"; "" when none did.
  /// Thread-safe.
  std::string lost();

 private:
  struct Child {
    int64_t rank;
    pid_t pid;  // 0: has ended
  };
  std::mutex mutex_;
  std::vector<Child> children_;
  std::string lost_;
};

/// Sends the messages of a process other than the first to a file of its own; restore() sends them
/// to where they went before, in case this process has to report a failure.
class OwnLog {
 public:
  void open(const std::string& path);
  void restore();

 private:
  int before_ = -1;
};

/// The connection of a process with the others of its run.
struct OwnProcess {
  c10::Device device;
  training::Processes& processes;
  Children& children;
  OwnLog& own_log;
};
/// Does the work of one process of several, or of the only one. A failure of another process ends
/// this one with that message and code, and leaves nothing half-written. Returns what `work`
/// returns. Throws: what `work` throws, after the other processes have got the message.
int run_in_processes(const training::ProcessPlace& place,
                     c10::Device device,
                     double timeout_s,
                     const std::function<int(OwnProcess& self)>& work);

}  // namespace cytra::app
