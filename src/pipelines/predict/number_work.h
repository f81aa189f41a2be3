#pragma once
// The work of `predict` for a network that tells something of whole images: a table instead of
// images.
#include <string>
#include <vector>

#include "inference/predictor/input.h"
#include "inference/predictor/subject.h"
#include "pipelines/predict/work.h"
#include "tasks/whole_images/image_target.h"

namespace cytra::inference {
class Decoder;
}

namespace cytra::pipelines {

/// Tells a class, labels or values of each image. predictions.jsonl has a line for each image that
/// is done, with its numbers, which is written after the image's picture; predictions.csv is made
/// of it at the end, as are, with data.with_target, the metrics.
class NumberWork final : public PredictWork {
 public:
  /// Throws: ConfigError for a temperature of values.
  NumberWork(const inference::Subject& subject,
             const InputOptions& data,
             const PredictOptions& options);
  ~NumberWork() override;

  const inference::LoadedModel& model() const override { return model_; }
  c10::Device device() const override { return device_; }
  std::string fingerprint() const override { return model_.fingerprint; }
  std::string source_key() const override { return x_key_; }
  std::vector<std::string> columns(bool with_target) const override;
  InputWants wants() const override;
  PartsToTake parts() const override {
    return {transforms_.axes(), transforms_.choose_time(), false, model_.spatial_dims == 2};
  }

  PredictJobPointer new_job() const override;
  std::optional<inference::ResultFiles> done_before(const PredictJob& job) const override;
  int64_t read(PredictJob& job) override;
  bool fits(const PredictJob& first, const PredictJob& next) const override;
  void compute(const std::vector<PredictJobPointer>& jobs,
               Progress& progress,
               const Send& send) override;
  void write(PredictJob& job) override;
  bool makes_tables() const override { return true; }
  void finish(const std::vector<Done>& images, cli::Results& results) override;

 private:
  struct Job;
  struct Member;
  /// The numbers of an image that the record says; empty: it has none.
  std::vector<double> numbers_of(const std::string& name,
                                 const std::string& stamp,
                                 const std::string& image) const;
  inference::LoadedModel model_;  // what is common to all
  std::vector<Member> members_;
  const c10::Device device_;
  inference::InputTransforms transforms_;
  const tasks::ImageTarget target_;
  const std::string x_key_;
  const std::vector<double> spacing_um_;
  const double threshold_;
  const bool has_pictures_, has_truth_;
};

}  // namespace cytra::pipelines
