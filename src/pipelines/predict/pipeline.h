#pragma once
// Images through a model: one thread reads, one computes, some write an image each.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/queue.h"
#include "pipelines/job/names.h"
#include "pipelines/predict/work.h"

namespace cytra::pipelines {

class PredictPipeline {
 public:
  /// `work` outlives this.
  PredictPipeline(PredictRun run, PredictWork& work);
  /// Predicts every frame of the inputs. An error of an image leaves out only that image, unless
  /// data.on_error=fail. Throws: errors that do not belong to one image (the device fails, the
  /// disk is full).
  void run(const std::vector<data::Sample>& inputs, Progress& progress);
  /// Makes what is made of all images; `inputs` are those of run(). For the first process.
  void finish(const std::vector<data::Sample>& inputs, const DoneRecord::Others& others);

 private:
  using Job = PredictJob;
  using JobPointer = PredictJobPointer;
  struct Rows {
    JobPointer job;
    at::Tensor values;     // (C,count,...); undefined: all are there
    bool is_kept = false;  // as PredictWork::take()
  };
  using Phase = Tally::Phase;

  // reading
  void read_all(const std::vector<data::Sample>& inputs);
  struct Scene {
    const data::Sample& sample;
    std::string stem, content;   // as a job's
    std::vector<int64_t> order;  // the input, the scene
  };
  /// False: no more are wanted.
  bool read_frames(const Scene& scene, const Frames& frames);
  /// The time lapse in whose file the frames are joined; null: they stay separate.
  std::shared_ptr<JoinedFrames> joined_of(const Scene& scene, std::size_t frames);
  /// False: nobody wants any more.
  bool read(const JobPointer& job);
  bool is_done(const JoinedFrames& joined);
  /// The results of an earlier run, counted; none: there is work.
  std::optional<inference::ResultFiles> done_before(const Job& job);
  void count_earlier(int64_t images, const inference::ResultFiles& files);
  // computing
  void compute_all(Progress& progress);
  void compute(const std::vector<JobPointer>& jobs, Progress& progress);
  void send(const JobPointer& job, const at::Tensor& values, bool is_kept);
  // writing
  void write_all(Queue<Rows>& rows);
  /// Finishes an image whose rows are all there. Its result is recorded in its turn.
  void finish(const JobPointer& job);
  void book(Job& job);
  /// Records the end of a frame of a time lapse: with files, or (null) left out.
  void end_frame(const Job& job, const inference::ResultFiles* files);
  Queue<Rows>& rows_of(const Job& job);
  /// False when it failed: the image is left out then. Throws: what is no matter of one image.
  bool attempt(const std::string& id, Phase phase, const std::function<void()>& work);
  void note_done(const Job& job) { done_[job.order] = {job.name(), job.stamp}; }

  const PredictRun run_;
  PredictWork& work_;
  bool shares_rows_ = false;
  OutputNames names_;
  Queue<JobPointer> ready_;                 // read, to be computed
  std::deque<Queue<Rows>> rows_;            // computed, to be written, by a thread each
  std::mutex turns_;                        // guards all that follows
  int64_t turn_ = 0;                        // that is booked next
  std::map<int64_t, JobPointer> finished_;  // the key is their turn
  /// Names and stamps of the images that are done, by their order; guarded by turns_.
  std::map<std::vector<int64_t>, std::array<std::string, 2>> done_;
};

}  // namespace cytra::pipelines
