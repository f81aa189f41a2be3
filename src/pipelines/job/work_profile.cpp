#include "pipelines/job/work_profile.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "device/backend.h"
#include "nn/model.h"
#include "perf/operator_profile.h"
#include "perf/transfers.h"
#include "training/memory_meter.h"
#include "training/transfer_table.h"

namespace cytra::pipelines {

struct WorkProfile::Kind {
  explicit Kind(std::string folder) : folder(std::move(folder)) {}
  virtual ~Kind() = default;
  virtual void end_batch() = 0;
  virtual void finish() = 0;
  const std::string folder;
  int64_t batches = 0;  // that have ended
};

struct WorkProfile::Memory final : Kind {
  Memory(c10::Device device, std::string folder, const nn::Model* model)
      : Kind(std::move(folder)), meter(std::make_shared<training::MemoryMeter>(device.type())) {
    if (model != nullptr) {
      for (const at::Tensor& weight : model->parameters()) meter->add(weight);
    }
    meter->start();
    watching.emplace(meter);
  }
  void end_batch() override {
    constexpr int64_t kInCourse = 3;
    meter->end_step(batches, batches == kInCourse);
  }
  void finish() override {
    watching.reset();
    meter->stop();
    meter->write(folder, "weights");
  }
  std::shared_ptr<training::MemoryMeter> meter;
  std::optional<training::WatchMemory> watching;
};

struct WorkProfile::Transfers final : Kind {
  Transfers(c10::Device device, std::string folder)
      : Kind(std::move(folder)), watch(std::in_place, device, [] { return std::string(); }) {
    watch->begin_step(1);
  }
  void end_batch() override { watch->begin_step(batches + 1); }
  void finish() override {
    const perf::Transfers found = watch->found();
    watch.reset();
    training::report_transfers(found, batches, "batch", folder);
  }
  std::optional<perf::TransferWatch> watch;
};

struct WorkProfile::Operations final : Kind {
  Operations(c10::Device device, std::string folder)
      : Kind(std::move(folder)), profiler({device::is_accelerator(device)}) {}
  void end_batch() override {
    constexpr int64_t kLast = 4;
    if (batches == 1) profiler.start();
    if (batches == kLast) write();
  }
  void finish() override {
    if (profiler.is_recording()) write();
    if (rows.empty())
      log::warn(
          "profile: nothing was recorded: the first batch is left out, and there was no other");
  }
  void write() {
    const std::string trace = folder + "/operations.pt.trace.json";
    profiler.stop(rows, trace);
    constexpr int64_t kRows = 20;
    const std::string table =
        perf::to_text(rows, is_on_gpu() ? "cuda_time_total" : "cpu_time_total", kRows);
    write_file(folder + "/table.txt", table);
    log::info("operations of batches 2 to {} ({}/table.txt):\n{}", batches, folder, table);
    log::info("trace for https://ui.perfetto.dev: {}", trace);
  }
  bool is_on_gpu() const {
    for (const auto& [name, row] : rows) {
      if (row.cuda_us > 0) return true;
    }
    return false;
  }
  perf::OperatorProfiler profiler;
  perf::OperatorRows rows;
};

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names{"memory", "pytorch", "transfers"};
  return names;
}

WorkProfile::WorkProfile(const std::string& kind,
                         c10::Device device,
                         std::string folder,
                         const nn::Model* model) {
  make_folders(folder);
  if (kind == "memory") kind_ = std::make_unique<Memory>(device, std::move(folder), model);
  if (kind == "transfers") kind_ = std::make_unique<Transfers>(device, std::move(folder));
  if (kind == "pytorch") kind_ = std::make_unique<Operations>(device, std::move(folder));
}

WorkProfile::~WorkProfile() = default;

std::unique_ptr<WorkProfile> make_profile(const std::optional<std::string>& kind,
                                          c10::Device device,
                                          const std::string& run_folder,
                                          int64_t rank,
                                          const nn::Model* model) {
  if (!kind) return nullptr;
  const std::string end = rank == 0 ? "" : fmt::format(".rank{}", rank);
  return std::make_unique<WorkProfile>(*kind, device, run_folder + "/profiler" + end, model);
}

void WorkProfile::end_batch() {
  kind_->batches += 1;
  kind_->end_batch();
}

void WorkProfile::finish() {
  kind_->finish();
}

}  // namespace cytra::pipelines
