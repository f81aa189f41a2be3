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
struct Place {
  int64_t rank = 0, size = 1;              // of all
  int64_t local_rank = 0, local_size = 1;  // of those on this machine
  std::string host = "127.0.0.1";          // of the store where they meet
  uint16_t port = 0;                       // 0: any that is free, for rank 0
  bool is_hosted = false;                  // the launcher keeps the store; else rank 0 does
  std::string attempt = "0";               // counts an elastic launcher's restarts
  bool is_child = false;                   // rank 0 started it, and decides on signals at the start
};

/// The processes of a data-parallel training: each has the whole model and its share of the images.
/// Alone by default; then every operation does nothing. Operations on tensors are collective: all
/// processes call the same ones in the same order. Built on c10d: Gloo for a CPU and for what is
/// small, NCCL for gradients on a GPU.
class Processes {
 public:
  Processes();
  /// Meets the others at the store; from now on a thread tells that this process lives.
  /// `timeout_s`: how long to wait for them, here and later. `lost`: what the launcher knows of
  /// processes that died, "" for nothing; called twice a second in that thread.
  /// Throws: IoError when rank 0 is not there in time.
  Processes(Place place, double timeout_s, std::function<std::string()> lost = {});
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  const Place& place() const { return place_; }  // the port: where the store is
  bool is_alone() const { return place_.size == 1; }
  bool is_first() const { return place_.rank == 0; }

  /// Before join(): a text from rank 0 to all; nothing for others to send.
  void send(const std::string& text);
  struct Received {
    std::string text;
    int code = 0;  // > 0: a process failed before, and said why
  };
  Received receive();

  /// Connects all. `logs`: where they write, for messages: <logs>.log, <logs>.rank1.log.
  /// Throws: IoError naming who did not come.
  void join(c10::Device device, const std::string& logs);
  /// All are done. Nothing may be called afterwards.
  void finish();

  /// Sums over the processes, in place. For small tensors; on any device.
  void sum(const std::vector<at::Tensor>& tensors);
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
  Place place_;
  std::unique_ptr<Shared> shared_;  // null: alone
};

}  // namespace cytra::training
