#pragma once
// The work of `predict` for a model that makes images: masks, objects, values.
#include <optional>
#include <string>
#include <vector>

#include "inference/outputs/result.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "pipelines/predict/work.h"
#include "tasks/result_scores.h"

namespace cytra::pipelines {

/// Predicts images by windows; large ones by rows, which go to the writer as they are made, and
/// which processes divide where they are more than the images.
class ImageWork final : public PredictWork {
 public:
  /// `head`: the name of the model's output, which scores end with; "": its only one.
  /// Throws: ConfigError where results do not have the form of the targets, for data.with_target.
  ImageWork(inference::Predictor predictor,
            std::string head,
            const InputOptions& data,
            const PredictOptions& options,
            const config::Node& inference_args);

  const inference::LoadedModel& model() const override { return predictor_.model(); }
  c10::Device device() const override { return windowed().device; }
  std::string engine() const override { return predictor_.engine(); }
  std::string fingerprint() const override;
  std::string source_key() const override { return pipelines::source_key(predictor_); }
  std::string target_key() const override { return windowed().y_key; }
  std::vector<std::string> columns(bool with_target) const override;
  InputWants wants() const override { return wants_of(predictor_, inference_args_); }
  PartsToTake parts() const override { return parts_to_take(predictor_); }
  Plan plan(const data::Sample& frame) override;
  bool can_share_rows() const override { return true; }

  PredictJobPointer new_job() const override;
  std::optional<inference::ResultFiles> done_before(const PredictJob& job) const override;
  int64_t read(PredictJob& job) override;
  bool fits(const PredictJob& first, const PredictJob& next) const override;
  void compute(const std::vector<PredictJobPointer>& jobs,
               Progress& progress,
               const Send& send) override;
  void take(PredictJob& job, const at::Tensor& rows, bool is_kept) override;
  void join(PredictJob& job) override;
  void write(PredictJob& job) override;
  void book(PredictJob& job) override;
  void forget(PredictJob& job) override;

  std::vector<at::Tensor> sums() override;
  void report(cli::Results& results) override;
  void finish(const std::vector<Done>& images, cli::Results& results) override;

 private:
  struct Job;
  const inference::WindowedModel& windowed() const { return predictor_.windowed(); }
  inference::ImageResult::Outputs outputs_of(const PredictJob& job) const;
  inference::SlidingWindowOptions begin_result(Job& job);
  void log_windows(const Job& job, const inference::SlidingWindowOptions& windows);
  void compute_rows(const PredictJobPointer& pointer, Progress& progress, const Send& send);
  struct Measured {
    double seconds = 0;  // for a window, with all that comes before and after it
    double bytes = 0;    // the peak of the process
  };
  Measured measure(const data::Sample& frame,
                   const std::vector<int64_t>& pass,
                   const inference::SlidingWindowOptions& windows,
                   int64_t count);

  const inference::Predictor predictor_;
  const std::string head_;
  const std::vector<double> spacing_um_;
  const std::string format_;  // of results
  std::string mask_;          // that predict.skip_empty names; "": none
  const config::Node inference_args_;
  std::optional<tasks::ResultScores> scores_;
  inference::ResultOptions result_;
  const std::vector<std::string> outputs_;
  std::function<std::string(int64_t)> class_name_;
  std::map<std::vector<int64_t>, Measured> measured_;  // by the shape of a pass
  bool told_ = false, told_components_ = false;
  bool has_objects_ = false, lacks_objects_ = false;  // a result; guarded by the tally's mutex
};

}  // namespace cytra::pipelines
