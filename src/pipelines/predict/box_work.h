#pragma once
// The work of `predict` for a detector: boxes instead of images.
#include <memory>
#include <string>
#include <vector>

#include "inference/predictor/subject.h"
#include "pipelines/detection/detector.h"
#include "pipelines/predict/work.h"

namespace cytra::pipelines {

/// Finds the objects of 2D images. detections.jsonl has a line for each image that is done, with
/// its boxes, which is written after the image's overlay; the tables are made of it at the end.
class BoxWork final : public PredictWork {
 public:
  /// Throws: ConfigError for a detector in other than 2 dimensions; as tiles_of().
  BoxWork(const inference::Subject& subject,
          const InputOptions& data,
          const PredictOptions& options,
          const config::Node& inference_args);

  const inference::LoadedModel& model() const override { return model_; }
  c10::Device device() const override { return device_; }
  std::string record() const override { return "detections"; }
  std::string fingerprint() const override { return detector_->fingerprint(); }
  std::string source_key() const override { return x_key_; }
  PartsToTake parts() const override { return {.takes_planes = true}; }
  std::vector<std::string> columns(bool /*with_target*/) const override { return {x_key_}; }

  PredictJobPointer new_job() const override;
  std::optional<inference::ResultFiles> done_before(const PredictJob& job) const override;
  int64_t read(PredictJob& job) override;
  void compute(const std::vector<PredictJobPointer>& jobs,
               Progress& progress,
               const Send& send) override;
  void write(PredictJob& job) override;
  std::vector<at::Tensor> sums() override;
  bool makes_tables() const override { return true; }
  void finish(const std::vector<Done>& images, cli::Results& results) override;

 private:
  struct Job;
  const inference::LoadedModel model_;
  const c10::Device device_;
  const std::string x_key_;
  const bool overlay_;
  DetectorOptions options_;
  std::unique_ptr<Detector> detector_;
  at::Tensor full_;  // images and windows with as many objects as are allowed, of all processes
};

}  // namespace cytra::pipelines
