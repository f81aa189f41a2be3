#pragma once
// A run of `predict` over inputs.
#include <algorithm>
#include <string>

#include <ATen/Parallel.h>

#include "pipelines/job/done_record.h"
#include "pipelines/job/inputs.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/job/tally.h"
#include "pipelines/predict/options.h"
#include "training/processes/processes.h"

namespace cytra::pipelines {

/// How many results are written side by side.
inline int64_t writer_threads() {
  return std::clamp<int64_t>(at::get_num_threads(), 1, 4);
}

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
  DoneRecord& record;
  training::Profile* profile = nullptr;  // null: none
};

}  // namespace cytra::pipelines
