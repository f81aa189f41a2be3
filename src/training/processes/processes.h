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
  std::vector<int64_t> gpus;               // the GPU of each of those; empty: the first ones
  std::string host = "127.0.0.1";          // of the store where they meet
  uint16_t port = 0;                       // 0: any that is free, for rank 0
  bool is_hosted = false;                  // the launcher keeps the store; else rank 0 does
  std::string attempt = "0";               // counts an elastic launcher's restarts
  bool is_child = false;                   // rank 0 started it, and decides on signals at the start
  std::string token;  // a secret of this training's processes: what others write is not believed
};

/// The processes of a data-parallel training: each has the whole model and its share of the
/// images. By default there is one process; then every operation does nothing. Operations on
/// tensors are collective: all processes call the same ones in the same order. Built on c10d: Gloo
/// for a CPU and for what is small, NCCL for gradients on a GPU.
class Processes {
 public:
  /// Functions of the program for its training; both are called in another thread.
  struct Hooks {
    /// What the launcher knows of processes that died, "" for nothing; called twice a second.
    std::function<std::string()> lost;
    /// Ends the process when the training has failed but waits for a device or a disk. None: it
    /// keeps waiting.
    std::function<void(const std::string& message, int code)> end;
  };

  Processes();
  /// Begins to look for the others at the store; from now on threads tell that this process lives,
  /// and end the operations that wait for one that does not. `timeout_s`: how long to wait for the
  /// others, here and later; one that gives no sign of life is waited for at most a minute. Ignores
  /// SIGPIPE if nobody handles it. Throws: IoError when the store's port is taken.
  Processes(ProcessPlace place, double timeout_s, Hooks hooks = {});
  ~Processes();
  Processes& operator=(Processes&&) = delete;

  const ProcessPlace& place() const { return place_; }  // the port: where the store is
  bool is_alone() const { return place_.size == 1; }
  bool is_first() const { return place_.rank == 0; }

  /// Sends a text from rank 0 to all, before join(); does nothing in other processes.
  void send(const std::string& text);
  struct Received {
    std::string text;
    int code = 0;  // > 0: ends with this: a process failed before, and said why; or a signal came
  };
  /// Throws: IoError when rank 0 can't be reached or sends nothing in time.
  Received receive();

  /// Connects all. `logs`: where they write, for messages: <logs>.log, <logs>.rank1.log.
  /// Returns 0, or the exit code of a signal that came meanwhile. Throws: IoError naming the
  /// processes that did not connect.
  int join(c10::Device device, const std::string& logs);
  /// Waits until all are done. Nothing may be called afterwards.
  void finish();

  /// Sums over the processes, in place. For small tensors; on any device.
  void sum(const std::vector<at::Tensor>& tensors);
  /// The rows (N,K) of all processes, by rank; each may have any number. Double, on the CPU.
  at::Tensor gather(const at::Tensor& rows);
  /// The mean over the processes, of a tensor on the device of join().
  at::Tensor mean(const at::Tensor& value);
  /// Gives rank 0's values to all, in place, on the device of join().
  void broadcast(const std::vector<at::Tensor>& tensors);

  /// The number of a signal that another process got, or 0; known within a second.
  int others_signal() const;
  /// Does work that may fail because another process failed: then the error names that process and
  /// has its exit code. A failure of this process is reported to the others.
  void guard(const std::function<void()>& work);
  /// Whether this process reports what failed: the first one does, while it lives.
  bool is_speaker() const;
  /// The process group for c10d::Reducer. Counts as an operation of its own.
  c10::intrusive_ptr<c10d::ProcessGroup> group();

 private:
  struct Shared;
  ProcessPlace place_;
  std::shared_ptr<Shared> shared_;  // null: alone
};

}  // namespace cytra::training
