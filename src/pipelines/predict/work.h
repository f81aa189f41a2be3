#pragma once
// What `predict` makes of images: result images, boxes, or numbers of whole images. PredictPipeline
// has the road, which is the same for all.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "cli/program.h"
#include "inference/models/trained_model.h"
#include "pipelines/predict/joined_frames.h"
#include "pipelines/predict/run.h"

namespace cytra::pipelines {

/// An image that is being processed: an input, or a scene or frame of one. Each work adds its own.
struct PredictJob {
  virtual ~PredictJob() = default;
  data::Sample sample;
  std::string path, stem, stamp;         // the image's path; its results' names and fingerprint
  std::string content;                   // a fingerprint of the image's files
  std::vector<int64_t> order;            // the input, its scene, its frame
  std::shared_ptr<JoinedFrames> joined;  // it is a frame of them; null: its files stay its own
  int64_t timepoint = 0;
  int64_t turn = 0;  // among those that are computed, whose results are booked in this order
  bool is_computed = false;
  std::atomic<bool> is_abandoned{false};
  inference::ResultFiles files;  // that were written
  std::string more;              // as DoneImage::more
  const std::string& id() const { return sample.id; }
  std::string name() const { return stem.substr(stem.rfind('/') + 1); }
};
using PredictJobPointer = std::shared_ptr<PredictJob>;

class PredictWork {
 public:
  virtual ~PredictWork() = default;

  /// The model, or what is common to several.
  virtual const inference::LoadedModel& model() const = 0;
  virtual c10::Device device() const = 0;
  /// The engine's name, as Predictor::engine(); "": none to tell.
  virtual std::string engine() const { return ""; }
  /// The kind of its DoneRecord.
  virtual std::string record() const { return "predictions"; }
  /// What, besides the configurations of run and training, results depend on.
  virtual std::string fingerprint() const = 0;

  // Inputs.
  /// The key of the image's file.
  virtual std::string source_key() const = 0;
  /// The key of a target's file, which is no part of what a result is made of; "": there is none.
  virtual std::string target_key() const { return ""; }
  /// The columns of a manifest: the image's, then, with data.with_target, those of targets.
  virtual std::vector<std::string> columns(bool with_target) const = 0;
  virtual InputWants wants() const { return wants_of(model()); }
  /// What the model has chosen of files already.
  virtual PartsToTake parts() const { return {}; }
  struct Plan {
    int64_t windows = 0;
    double bytes = 0, seconds = 0;
    std::string text;  // for the log; "": nothing to say
  };
  /// What predicting a frame takes, for predict.dry_run. By default the first one is read and
  /// predicted, and stands for all. Throws: as read() and compute().
  virtual Plan plan(const data::Sample& frame);

  /// The run begins. `shares_rows`: its processes divide the rows of each image, which only a work
  /// that can_share_rows() is asked for.
  void begin(const PredictRun& run, bool shares_rows) {
    run_.emplace(run);
    shares_rows_ = shares_rows;
  }
  virtual bool can_share_rows() const { return false; }

  // An image's way, in this order; what an Error ends is left out.
  virtual PredictJobPointer new_job() const = 0;
  /// The files of an image that was done with its stamp; none: there is work.
  virtual std::optional<inference::ResultFiles> done_before(const PredictJob& job) const;
  /// Loads it. Returns the bytes that it takes until it is predicted.
  virtual int64_t read(PredictJob& job) = 0;
  /// Whether an image may be predicted together with those of a batch that begins with `first`.
  virtual bool fits(const PredictJob& /*first*/, const PredictJob& /*next*/) const { return true; }
  /// Sends rows of a result to take(), once there is room.
  using Send =
      std::function<void(const PredictJobPointer& job, const at::Tensor& rows, bool is_kept)>;
  /// Predicts images that fit together; each whose result is whole is_computed. Where several
  /// fail, each of the others is predicted by itself.
  virtual void compute(const std::vector<PredictJobPointer>& jobs,
                       Progress& progress,
                       const Send& send) = 0;
  virtual void take(PredictJob& /*job*/, const at::Tensor& /*rows*/, bool /*is_kept*/) {}
  /// After the last rows, also of an image that failed.
  virtual void join(PredictJob& /*job*/) {}
  /// Writes job.files, and says job.more. Thread: one of several.
  virtual void write(PredictJob& job) = 0;
  /// Counts an image that is written, in its turn, with the tally locked.
  virtual void book(PredictJob& /*job*/) {}
  /// After an image that is booked is recorded.
  virtual void forget(PredictJob& /*job*/) {}

  // The end.
  /// Sums over images, which processes add up.
  virtual std::vector<at::Tensor> sums() { return {}; }
  /// Reports what is known by now, also when a signal ends the run.
  virtual void report(cli::Results& /*results*/) {}
  /// Whether finish() makes what a signal keeps from being made.
  virtual bool makes_tables() const { return false; }
  /// An image that is done, by this or another process, in this run or before.
  struct Done {
    const data::Sample& input;
    std::string name, stamp;
  };
  /// Makes what is made of all images, which are in the order of the inputs.
  virtual void finish(const std::vector<Done>& images, cli::Results& results) = 0;

 protected:
  const PredictRun& run() const { return *run_; }
  bool shares_rows() const { return shares_rows_; }

 private:
  std::optional<PredictRun> run_;
  bool shares_rows_ = false;
  std::optional<double> seconds_;  // that the first plan() took
};

}  // namespace cytra::pipelines
