#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace c10d {
class ProcessGroup;
}

namespace cytra::training {

/// Which of a training's processes this one is, and where they meet.
struct ProcessPlace {
  int64_t rank = 0, size = 1;              // of all
  int64_t local_rank = 0, local_size = 1;  // of those on this machine
  std::string host = "127.0.0.1";          // of the store where they meet
  uint16_t port = 0;                       // 0: any that is free, for rank 0
  bool is_hosted = false;                  // the launcher keeps the store; else rank 0 does
  std::string attempt = "0";               // counts an elastic launcher's restarts
  bool is_child = false;                   // rank 0 started it, and decides on signals at the start
  std::string token;  // a secret of this training's processes: what others write is not believed
};

/// The processes of a data-parallel training: each has the whole model and its share of the images.
/// Alone by default; then every operation does nothing. Operations on tensors are collective: all
/// processes call the same ones in the same order. Built on c10d: Gloo for a CPU and for what is
/// small, NCCL for gradients on a GPU.
class Processes {
 public:
  /// What a program does for its training; both are called in a thread.
  struct Hooks {
    /// What the launcher knows of processes that died, "" for nothing; twice a second.
    std::function<std::string()> lost;
    /// Ends the process: the training failed, but waits for a device or a disk. None: it waits on.
    std::function<void(const std::string& message, int code)> end;
  };

  Processes();
  /// Begins to look for the others at the store; from now on threads tell that this process lives,
  /// and end the operations that wait for one that does not. `timeout_s`: how long to wait for the
  /// others, here and later; one that gives no sign of life is waited for at most a minute. Ignores
  /// SIGPIPE if nobody handles it. Throws: IoError when the store's port is taken.
  Processes(ProcessPlace place, double timeout_s, Hooks hooks = {});
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  const ProcessPlace& place() const { return place_; }  // the port: where the store is
  bool is_alone() const { return place_.size == 1; }
  bool is_first() const { return place_.rank == 0; }

  /// Before join(): a text from rank 0 to all; nothing for others to send.
  void send(const std::string& text);
  struct Received {
    std::string text;
    int code = 0;  // > 0: ends with this: a process failed before, and said why; or a signal came
  };
  /// Throws: IoError when rank 0 can't be reached or sends nothing in time.
  Received receive();

  /// Connects all. `logs`: where they write, for messages: <logs>.log, <logs>.rank1.log.
  /// Returns 0, or the exit code of a signal that came meanwhile. Throws: IoError naming who did
  /// not come.
  int join(c10::Device device, const std::string& logs);
  /// All are done. Nothing may be called afterwards.
  void finish();

  /// Sums over the processes, in place. For small tensors; on any device.
  void sum(const std::vector<at::Tensor>& tensors);
  /// The rows (N,K) of all processes, by rank; each has as many as it likes. Double, on the CPU.
  at::Tensor gather(const at::Tensor& rows);
  /// The mean over the processes, of a tensor on the device of join().
  at::Tensor mean(const at::Tensor& value);
  /// Rank 0's values for all, in place, on the device of join().
  void broadcast(const std::vector<at::Tensor>& tensors);

  /// The number of a signal that another process got, or 0; known within a second.
  int others_signal() const;
  /// Does work that may fail since another process did: then the error names that one, and has its
  /// exit code. A failure of this process is told to the others.
  void guard(const std::function<void()>& work);
  /// Whether it is for this process to say what failed: the first does, while it lives.
  bool is_speaker() const;
  /// For c10d::Reducer. Counts as an operation of its own.
  c10::intrusive_ptr<c10d::ProcessGroup> group();

 private:
  struct Shared;
  ProcessPlace place_;
  std::shared_ptr<Shared> shared_;  // null: alone
};

}  // namespace cytra::training
