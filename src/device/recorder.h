#pragma once
// Work of a device that is recorded once and then started all at once (CUDA graphs).
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace cytra::device {

/// Why work can't be recorded: there is no GPU, the host reads from the device in it, or its memory
/// does not fit twice.
struct NotRecordable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Records the operations that some work starts on a device, to start them again all at once: the
/// same operations on the same memory, with the numbers that the host had then (a CUDA graph).
/// Its recordings share the memory of their temporaries: two must never run at the same time.
class Recorder {
 public:
  /// Gives its outputs; undefined tensors are allowed.
  using Work = std::function<std::vector<at::Tensor>()>;
  class Recording {
   public:
    virtual ~Recording() = default;
    /// Writes what the work gives for the present inputs into `outputs`. Random numbers are those
    /// of the device's generator as it stands.
    virtual void replay() = 0;
    std::vector<at::Tensor> outputs;
  };
  virtual ~Recorder() = default;
  /// Waits until the device has done all its work.
  virtual void wait() = 0;
  /// Does the work as it will be recorded, so that libraries have chosen their algorithms.
  /// Throws, unless it `may_wait` for the device (what is set up once may): NotRecordable when it
  /// does; some of it has been done then. That is found by a state of the process, in which no
  /// other thread may wait: for trainings alone.
  virtual std::vector<at::Tensor> rehearse(const Work& work, bool may_wait) = 0;
  /// Records the work without doing it. Throws: NotRecordable; the device is then in its earlier
  /// state.
  virtual std::unique_ptr<Recording> record(const Work& work) = 0;
};

/// Held while work is rehearsed or recorded, and while a device's unused memory is given back: none
/// of them may be in the midst of another.
std::mutex& recording_mutex();

using MakeRecorder = Recorder* (*)(c10::Device device);
constexpr char kMakeRecorder[] = "cytra_make_recorder";  // its name in a library of kernels

/// Sets the recorder for devices of this type. A GPU's comes with libcytra_cuda.so.
void set_recorder(c10::DeviceType type, MakeRecorder make);
/// Throws: NotRecordable saying why there is none for this device.
std::unique_ptr<Recorder> make_recorder(c10::Device device);

}  // namespace cytra::device
