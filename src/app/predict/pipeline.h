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

#include "app/predict/config.h"
#include "app/predict/job.h"
#include "app/predict/record.h"
#include "app/run/books.h"
#include "base/progress.h"
#include "base/queue.h"
#include "pipelines/job/stage_report.h"
#include "tasks/result_scores.h"
#include "training/processes/processes.h"

namespace cytra::app {

/// How many results are written side by side.
int64_t writer_threads();

/// What the threads do, over all heads. perf::Scope times the same work.
struct PredictStages {
  pipelines::StageReport report{"predict"};
  pipelines::StageReport::Stage& read = report.add("read");
  pipelines::StageReport::Stage& predict = report.add("predict");
  pipelines::StageReport::Stage& write = report.add("write", writer_threads());
};

class PredictPipeline {
 public:
  /// `scores`: null: nothing is scored. `processes` share the inputs out among them,
  /// or the rows of each where there are fewer inputs than processes. All outlive this.
  PredictPipeline(const PredictConfig& config,
                  const inference::Predictor& predictor,
                  std::string folder,
                  Books& books,
                  PredictRecord& record,
                  tasks::ResultScores* scores,
                  training::Processes& processes,
                  PredictStages& stages);
  /// Predicts every frame of the inputs. What is wrong with an image costs that image alone, unless
  /// data.on_error=fail. Throws: what is no matter of one image (the device fails, the disk is
  /// full).
  void run(const std::vector<data::Sample>& inputs, Progress& progress);

 private:
  using Job = PredictJob;
  using JobPointer = std::shared_ptr<Job>;
  struct Rows {
    JobPointer job;
    at::Tensor values;     // (C,count,...); undefined: all are there
    bool is_kept = false;  // in the journal
  };
  enum class Part { reading, computing, writing };

  void read_all(const std::vector<data::Sample>& inputs);
  /// The frames of an input, with the stems of their results. False: nobody wants any more.
  bool read_frames(const data::Sample& input,
                   const Frames& frames,
                   const std::string& stem,
                   const std::string& content);
  /// The lapse that the frames become one file of; null: they stay apart.
  std::shared_ptr<PredictLapse> lapse_of(const data::Sample& input,
                                         std::size_t frames,
                                         const std::string& stem,
                                         const std::string& content);
  /// False: nobody wants any more.
  bool read(const JobPointer& job);
  bool is_done(const PredictLapse& lapse);
  /// A frame of a lapse has come to its end: with files, or (null) was left out.
  void end_frame(const Job& job, const PredictedFiles* files);
  bool is_done(const Job& job);
  void compute_all(Progress& progress);
  void compute(const JobPointer& job, Progress& progress);
  void compute_together(const std::vector<JobPointer>& jobs, Progress& progress);
  void compute_rows(const JobPointer& job,
                    const inference::SlidingWindowOptions& windows,
                    const inference::WindowProgress& progress);
  inference::SlidingWindowOptions begin(Job& job);
  void send(const JobPointer& job, const at::Tensor& values, bool is_kept = false);
  void write_all(Queue<Rows>& rows);
  void join_rows(Job& job);
  /// All rows of an image are there. It is booked in its turn.
  void finish(const JobPointer& job);
  void book(Job& job);
  Queue<Rows>& rows_of(const Job& job);
  void fail_rows(const std::exception_ptr& error);
  /// False when it failed: the image is left out then. Throws: what is no matter of one image.
  bool attempt(const std::string& id, Part part, const std::function<void()>& work);
  void tell(const Job& job, const inference::SlidingWindowOptions& windows);

  const PredictConfig& config_;
  const inference::Predictor& predictor_;
  const std::string folder_;
  Books& books_;
  PredictRecord& record_;
  tasks::ResultScores* scores_;
  training::Processes& processes_;
  PredictStages& stages_;
  bool shares_rows_ = false;
  const PredictionFiles::Common common_;
  const std::string settings_;  // all that results depend on but the images
  OutputNames names_;
  bool told_ = false, told_components_ = false;
  Queue<JobPointer> ready_;                 // read, to be computed
  std::deque<Queue<Rows>> rows_;            // computed, to be written, by a thread each
  std::mutex turns_;                        // guards all that follows
  int64_t turn_ = 0;                        // that is booked next
  std::map<int64_t, JobPointer> finished_;  // by their turn
};

}  // namespace cytra::app
