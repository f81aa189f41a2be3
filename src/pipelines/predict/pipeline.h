#pragma once
// Images through a model: one thread reads, one computes, some write an image each.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/queue.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "pipelines/job/done_record.h"
#include "pipelines/job/inputs.h"
#include "pipelines/job/names.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/job/tally.h"
#include "pipelines/job/work_profile.h"
#include "pipelines/predict/job.h"
#include "pipelines/predict/options.h"
#include "tasks/result_scores.h"
#include "training/processes/processes.h"

namespace cytra::pipelines {

/// How many results are written side by side.
int64_t writer_threads();

/// What the threads do, over all heads.
struct PredictStages {
  StageReport report{"predict"};
  StageReport::Stage& read = report.add("read");
  StageReport::Stage& predict = report.add("predict");
  StageReport::Stage& write = report.add("write", writer_threads());
};

/// The parts of a run of `predict`. The objects that it refers to must outlive the pipeline.
struct PredictRun {
  const InputOptions& data;
  const PredictOptions& options;
  std::string settings;  // all that results depend on but the images
  std::string folder;    // of the results
  Tally& tally;
  /// They share the inputs out among them, or the rows of each where there are fewer inputs.
  training::Processes& processes;
  PredictStages& stages;
  training::Profile* profile = nullptr;  // null: none
};

class PredictPipeline {
 public:
  /// `scores`: null: nothing is scored. All outlive this.
  PredictPipeline(PredictRun run,
                  const inference::Predictor& predictor,
                  DoneRecord& record,
                  tasks::ResultScores* scores);
  /// Predicts every frame of the inputs. An error of an image leaves out only that image, unless
  /// data.on_error=fail. Throws: errors that do not belong to one image (the device fails, the
  /// disk is full).
  void run(const std::vector<data::Sample>& inputs, Progress& progress);

 private:
  using Job = PredictJob;
  using JobPointer = std::shared_ptr<Job>;
  struct Rows {
    JobPointer job;
    at::Tensor values;     // (C,count,...); undefined: all are there
    bool is_kept = false;  // in the journal
  };
  using Phase = Tally::Phase;

  void read_all(const std::vector<data::Sample>& inputs);
  /// Reads the frames of an input, with the stems of their results. False: no more frames are
  /// wanted.
  bool read_frames(const data::Sample& input,
                   const Frames& frames,
                   const std::string& stem,
                   const std::string& content);
  /// The time lapse in whose file the frames are joined; null: they stay separate.
  std::shared_ptr<PredictLapse> lapse_of(const data::Sample& input,
                                         std::size_t frames,
                                         const std::string& stem,
                                         const std::string& content);
  /// False: nobody wants any more.
  bool read(const JobPointer& job);
  bool is_done(const PredictLapse& lapse);
  /// Records the end of a frame of a time lapse: with files, or (null) left out.
  void end_frame(const Job& job, const inference::ResultFiles* files);
  /// The results of an earlier run, counted; none: there is work.
  std::optional<inference::ResultFiles> done_before(const Job& job);
  void compute_all(Progress& progress);
  void compute(const JobPointer& job, Progress& progress);
  void compute_together(const std::vector<JobPointer>& jobs, Progress& progress);
  void compute_rows(const JobPointer& job,
                    const inference::SlidingWindowOptions& windows,
                    const inference::WindowProgress& progress);
  inference::ImageResult::Outputs outputs_of(const Job& job) const;
  inference::SlidingWindowOptions begin(Job& job);
  void send(const JobPointer& job, const at::Tensor& values, bool is_kept = false);
  void write_all(Queue<Rows>& rows);
  void join_rows(Job& job);
  /// Finishes an image whose rows are all there. Its result is recorded in its turn.
  void finish(const JobPointer& job);
  void book(Job& job);
  Queue<Rows>& rows_of(const Job& job);
  /// False when it failed: the image is left out then. Throws: what is no matter of one image.
  bool attempt(const std::string& id, Phase phase, const std::function<void()>& work);
  void log_windows(const Job& job, const inference::SlidingWindowOptions& windows);

  const PredictRun run_;
  const inference::Predictor& predictor_;
  DoneRecord& record_;
  tasks::ResultScores* scores_;
  bool shares_rows_ = false;
  const inference::ResultOptions result_;
  const std::vector<std::string> outputs_;
  std::function<std::string(int64_t)> class_name_;
  OutputNames names_;
  bool told_ = false, told_components_ = false;
  bool has_objects_ = false, lacks_objects_ = false;  // a result; guarded by the tally's mutex
  Queue<JobPointer> ready_;                           // read, to be computed
  std::deque<Queue<Rows>> rows_;                      // computed, to be written, by a thread each
  std::mutex turns_;                                  // guards all that follows
  int64_t turn_ = 0;                                  // that is booked next
  std::map<int64_t, JobPointer> finished_;            // by their turn
};

}  // namespace cytra::pipelines
