// `preprocess_fundus`: photographs of retinas at one place, size and contrast, with a table of
// where each disc was.
#include "app/run/entry.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "config/text_of.h"
#include "pipelines/fundus/files.h"
#include "pipelines/job/inputs.h"
#include "pipelines/job/names.h"
#include "pipelines/job/stamp.h"
#include "pipelines/job/tally.h"

namespace cytra::app {
namespace {

using data::fundus::Disc;

struct FundusData {
  std::string path, key = "raw";
  void visit(auto& v) {
    v("path", path, "an image, a folder of images, or a manifest (.csv, .tsv)", config::required);
    v("key", key, "the manifest's column of the images");
  }
};

struct FundusConfig : CommonConfig {
  FundusData data;
  pipelines::FundusOptions fundus;
  device::DeviceOptions trainer;
  void visit(auto& v) {
    v("data", data, "the photographs");
    v("fundus", fundus, "how the retina is found, and what is written");
    v("trainer", trainer, "where to compute");
    CommonConfig::visit(v);
  }
};

const bool fundus_is_added = add_program<FundusConfig>("preprocess_fundus");

int run_fundus(cli::Run run, const FundusConfig& config) {
  watch_signals();
  device::prepare(config.performance);
  const c10::Device device = device::choose_device(config.trainer.accelerator);
  device::apply(config.performance, device);
  const std::string& folder = config.paths.output_dir;
  pipelines::Tally tally(run.json);
  pipelines::InputOptions listed;
  listed.path = config.data.path;
  pipelines::OutputNames names;
  std::vector<pipelines::FundusInput> inputs;
  for (const data::Sample& sample :
       pipelines::list_inputs(listed, {config.data.key}, tally.leaving_out())) {
    const data::Source& source = sample.sources.at(config.data.key);
    inputs.push_back({source.path, names.next(source)});
  }
  tally.images += std::ssize(inputs);
  pipelines::FundusFiles files(folder,
                               inputs,
                               config.fundus,
                               config::text_of(config.performance, pipelines::kOptionsOfSpeed));
  std::vector<pipelines::FundusInput> left;
  for (const pipelines::FundusInput& input : inputs)
    if (!files.has(input)) left.push_back(input);
  tally.done = tally.resumed = static_cast<int64_t>(inputs.size() - left.size());
  pipelines::StageReport report("preprocess_fundus");
  const auto conclude = [&](int signal) {
    const std::string table = files.write_table();
    tally.results.add("images", config::Node::make_integer(tally.done));
    tally.results.add("table", table);
    tally.conclude(folder, "done", signal);
  };
  {
    const pipelines::EndOnSignal end_on_signal(tally, conclude);
    Progress progress("retinas", std::ssize(left));
    int64_t seen = 0;
    pipelines::FundusEvents events;
    events.done = [&](const pipelines::FundusInput& input, const Disc& disc) {
      const std::lock_guard guard(tally.mutex);
      files.add(input, disc);
      ++tally.done;
      progress.update(++seen);
    };
    events.failed =
        [&](const pipelines::FundusInput& input, const std::exception& error, const Disc* disc) {
          tally.leave_out(input.path, error);
          const std::lock_guard guard(tally.mutex);
          files.add_failed(input, disc);
          progress.update(++seen);
        };
    pipelines::preprocess_fundus(left, config.fundus, folder, device, report, events);
  }
  report.finish();
  log::info("{}", report.table());
  conclude(0);
  return tally.code;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_preprocess_fundus(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::run_fundus);
}
