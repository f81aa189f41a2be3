// The work of `gpu_profile_batch`: batch sizes and stages of batch_segment, measured on an image.
#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "app/segment/config.h"
#include "base/files.h"
#include "base/log.h"
#include "data/sample/image_tensor.h"
#include "io/reader.h"
#include "pipelines/batch_segment/files.h"
#include "pipelines/batch_segment/profile.h"

namespace cytra::app {
namespace {

using pipelines::SegmentedImage;
using pipelines::SegmentInput;

struct ProfileBatchConfig : SegmentConfig {
  std::string test_image;
  std::optional<std::string> view;
  bool benchmark_sam = false, profile_pipeline = false;
  std::vector<int64_t> batch_sizes;
  double seconds = 1;
  int64_t images = 8;
  void visit(auto& v) {
    v("test_image", test_image, "an image like those to be segmented", config::required);
    v("view", view, "which of the detectors by view finds its objects");
    v("benchmark_sam", benchmark_sam, "boxes per second of each batch size");
    v("profile_pipeline", profile_pipeline, "where the time goes");
    v("batch_sizes", batch_sizes, "boxes in one pass of the mask decoder, ascending", 1, 65536);
    v("seconds", seconds, "for each batch size", 0.001, 3600);
    v("images", images, "how often the test image goes through all stages", 1, 100000);
    SegmentConfig::visit(v);
  }
};
const bool gpu_profile_batch_is_added = add_program<ProfileBatchConfig>("gpu_profile_batch");

/// A folder that is removed with this object.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(
            make_run_folder((std::filesystem::temp_directory_path() / "cytra-profile").string())) {}
  ~ScratchFolder() { remove_all_quietly(path_); }
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

/// Writes results as batch_segment does.
class ProfileSink final : public pipelines::SegmentSink {
 public:
  explicit ProfileSink(const std::string& folder)
      : files_(
            folder, [](const std::string&) { return ""; }, false) {}
  bool wants(const SegmentInput&, const std::string&) override { return true; }
  void take(const SegmentedImage& image) override { files_.write(image); }
  void leave_out(const SegmentInput&, std::exception_ptr error) override {
    std::rethrow_exception(error);
  }

 private:
  pipelines::SegmentFiles files_;
};

void benchmark_boxes(const ProfileBatchConfig& config,
                     const pipelines::SegmentModels& models,
                     c10::Device device,
                     cli::Results& results) {
  const c10::InferenceMode inference_mode;
  at::Tensor image = data::to_tensor(io::read_image(config.test_image), 2, config.test_image);
  if (image.scalar_type() != at::kByte) image = image.to(at::kFloat);
  ops::Boxes found =
      models.load_detector(models.detector_of(config.view.value_or("")))->detect({image}).at(0);
  results.add("detections", config::Node::make_integer(found.count()));
  if (found.count() == 0) {
    log::warn("{}: nothing was found, so a box of the whole image is measured", config.test_image);
    const at::Tensor whole = at::zeros({1, 4});
    whole[0][2] = image.size(2);
    whole[0][3] = image.size(1);
    found = {whole, at::ones({1}), at::zeros({1}, at::kLong)};
  }
  const auto segmenter = models.load_segmenter();
  const auto batches = pipelines::profile_boxes(
      *segmenter, image, found, config.batch_sizes, device, config.seconds);
  log::info("boxes in one pass of the mask decoder, {} detections:\n{}",
            found.count(),
            pipelines::format_batches(batches, device));
  for (const pipelines::BoxBatch& batch : batches)
    results.add(fmt::format("boxes_per_second/{}", batch.size), batch.boxes_per_s);
  const int64_t best = pipelines::best_batch(batches);
  if (best > 0) results.add("sam_batch_size", config::Node::make_integer(best));
}

void profile_stages(const ProfileBatchConfig& config,
                    const pipelines::SegmentModels& models,
                    c10::Device device,
                    cli::Results& results) {
  const ScratchFolder folder;
  ProfileSink sink(folder.path());
  std::vector<SegmentInput> inputs;
  for (int64_t i = 0; i < config.images; ++i)
    inputs.push_back({config.test_image, std::to_string(i), config.view.value_or("")});
  pipelines::BatchSegmentOptions options;
  const pipelines::SegmentPreset preset = pipelines::segment_preset("auto", device);
  options.mode = "optimized";  // one stage after the other: their times add up
  options.sam_batch_size = preset.sam_batch_size;
  options.image_batch_size = preset.image_batch_size(options.mode);
  pipelines::StageReport report("gpu_profile_batch");
  pipelines::BatchSegmenter segmenter(models, options, device, report);
  segmenter.run(inputs, sink);
  report.finish();
  const pipelines::IoShare share = pipelines::io_share(report);
  log::info("{} times the image, one stage after the other:\n{}", config.images, report.table());
  log::info("reading and writing {:.1f} %, computing {:.1f} %: {}",
            100 * share.io,
            100 * share.compute,
            share.verdict);
  log::info("what helps: {}", share.advice);
  results.add("io_share", share.io);
  results.add("compute_share", share.compute);
  results.add("verdict", share.verdict);
}

int gpu_profile_batch(cli::Run run, const ProfileBatchConfig& config) {
  device::prepare(config.performance);
  const c10::Device device = device::choose_device(config.trainer.accelerator);
  const inference::EngineOptions engine = config.engine(device);
  device::apply(config.performance, device);
  log::info("{} on {}", config.test_image, device::describe(device));
  const pipelines::SegmentModels models = config.models(
      engine, pipelines::segment_preset("auto", device).image_batch_size("optimized"), 0, device);
  models.detector_of(config.view.value_or(""));  // before any work
  cli::Results results(run.json);
  const bool both = !config.benchmark_sam && !config.profile_pipeline;
  if (both || config.benchmark_sam) benchmark_boxes(config, models, device, results);
  if (both || config.profile_pipeline) profile_stages(config, models, device, results);
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_gpu_profile_batch(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::gpu_profile_batch);
}
