#include "pipelines/predict/work.h"

#include "base/stopwatch.h"
#include "device/device.h"

namespace cytra::pipelines {

PredictWork::Plan PredictWork::plan(const data::Sample& frame) {
  if (!seconds_) {
    const auto compute = [&] {
      const PredictJobPointer job = new_job();
      job->sample = frame;
      job->path = frame.sources.at(source_key()).path;
      Progress none("", -1);
      read(*job);
      const Stopwatch stopwatch;
      this->compute({job}, none, {});
      device::synchronize(device());
      return stopwatch.seconds();
    };
    compute();  // the first pass prepares things
    seconds_ = compute();
  }
  return {0, 0, *seconds_, ""};
}

std::optional<inference::ResultFiles> PredictWork::done_before(const PredictJob& job) const {
  return run().record.find(job.name(), job.stamp);
}

}  // namespace cytra::pipelines
