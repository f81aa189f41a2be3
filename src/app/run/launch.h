#pragma once
// How the processes of a run come about: by torchrun, by Slurm, or started by the first one.
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

/// Where this process stands, by the environment of torchrun (RANK, WORLD_SIZE, ...) or srun
/// (SLURM_PROCID, SLURM_NTASKS, ...); else the first of trainer.devices. Throws: ConfigError when
/// environment and options contradict each other.
training::ProcessPlace place_of(const training::TrainerOptions& options, c10::Device device);
/// How many GPUs this process sees.
int64_t count_gpus();
/// Which of the `gpus` that it sees a process uses: its own number, or the only one there is, since
/// Slurm's --gpus-per-task=1 shows each task another. Throws: ConfigError when there are too few.
int64_t gpu_of(const training::ProcessPlace& place, int64_t gpus);
/// The device of this process among several, which becomes the current one.
c10::Device device_of(const training::ProcessPlace& place, c10::Device device);
/// Whether the first process has to start the others.
bool starts_others(const training::ProcessPlace& place);
/// The first host of Slurm's list: "gpu[03-07,11],cpu1" -> "gpu03".
std::string first_host(const std::string& nodes);
/// CPU threads for each of the processes on this machine.
int threads_of(const training::ProcessPlace& place);

/// What all processes must have in common with the first one, beside the configuration.
struct CommonPaths {
  std::string folder, checkpoint;
};
std::string text_of(const CommonPaths& common, const cli::Run& run);
/// Also takes the first process's configuration, whose times and folders are those of the run.
CommonPaths take_common(const std::string& text, cli::Run& run);

/// The processes that the first one starts: this program with the same command line, and torchrun's
/// variables. They never outlive it.
class Children {
 public:
  Children() = default;
  /// Waits some seconds until all have ended, then makes them end.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  void start(const training::ProcessPlace& place);
  /// "rank 1 was ended by signal 9 (Killed)", or "" when nothing happened. Thread-safe.
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

/// The messages of a process but the first go to a file of their own, to the end; restore(): to
/// where they went before, should it be for this process to say what failed.
class OwnLog {
 public:
  void open(const std::string& path);
  void restore();

 private:
  int before_ = -1;
};

/// What a process has to do with the others of its run.
struct OwnProcess {
  c10::Device device;
  training::Processes& processes;
  Children& children;
  OwnLog& own_log;
};
/// The work of one process of several, or of the only one. What another process fails by ends this
/// one with that message and code, and leaves nothing half-written. Returns what `work` does.
/// Throws: what `work` throws, told to the others, too.
int run_in_processes(const training::ProcessPlace& place,
                     c10::Device device,
                     double timeout_s,
                     const std::function<int(OwnProcess& self)>& work);

}  // namespace cytra::app
