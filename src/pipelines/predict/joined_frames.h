#pragma once
// Time lapses whose results become one file: predict.frames=together.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "inference/outputs/output.h"
#include "io/formats.h"

namespace cytra::pipelines {

/// The files of an input's frames, until the last frame is done. Thread-safe.
class JoinedFrames {
 public:
  /// `stem`: the begin of its results' names, with the folder. `stamp`: a fingerprint of all they
  /// depend on.
  JoinedFrames(std::string image, std::string stem, std::string stamp, int64_t frames);
  const std::string& image() const { return image_; }
  const std::string& stem() const { return stem_; }
  const std::string& stamp() const { return stamp_; }
  int64_t frames() const { return frames_; }
  std::string name() const { return stem_.substr(stem_.rfind('/') + 1); }

  /// Both record that a frame is done, or left out, and return whether it was the last.
  bool add(int64_t timepoint, const inference::ResultFiles& files);
  bool leave_out();
  /// The number of frames that were left out.
  int64_t failed() const { return failed_; }
  /// The files of all frames, in their order.
  inference::ResultFiles files() const;
  /// Makes one image with time points of the frames' predictions, and one table, with a column
  /// `timepoint`, of their measurements; other files stay as they are, and the joined parts are
  /// removed. Returns what is there now. Throws: DataError for frames that differ in shape,
  /// IoError.
  inference::ResultFiles join() const;

 private:
  bool is_last() const { return std::ssize(done_) + failed_ == frames_; }
  std::vector<std::string> paths(const std::string& kind) const;
  const std::string image_, stem_, stamp_;
  const int64_t frames_;
  std::mutex mutex_;
  std::map<int64_t, inference::ResultFiles> done_;  // the key is a time point
  int64_t failed_ = 0;
};

/// The format for time lapses, of those that hold time: the one that predict.format names, or else
/// that of images like `source`.
const io::Format& joined_format(const std::string& format, const std::string& source);

/// One image of several: `paths` have its time points, in order, in a type that holds the values of
/// all, in the format that the ending says, which holds time. Throws: DataError for shapes that
/// differ, as the writers.
void join_timepoints(const std::vector<std::string>& paths,
                     const std::string& into,
                     bool is_labels);

}  // namespace cytra::pipelines
