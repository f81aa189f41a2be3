#pragma once
#include <atomic>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "inference/outputs/result.h"
#include "io/row_journal.h"
#include "pipelines/predict/lapse.h"
#include "tasks/result_scores.h"

namespace cytra::pipelines {

/// An image that is being processed: an input, or a frame of one.
struct PredictJob {
  data::Sample sample;
  std::string path, stem, stamp;  // of the image; of its files, with the folder
  std::string content;            // of the image's files
  std::string rows_stamp;         // also of the windows that were chosen
  std::shared_ptr<const inference::ModelInput> input;
  tasks::ResultScores::Target truth;
  std::unique_ptr<inference::ImageResult> result;
  std::shared_ptr<PredictLapse> lapse;  // that it is a frame of; null: its files stay its own
  int64_t timepoint = 0;
  int64_t turn = 0;  // among those that are computed, whose results are booked in this order
  std::unique_ptr<io::RowJournal> journal;
  std::atomic<bool> is_abandoned{false};
  const std::string& id() const { return sample.id; }
  std::string name() const { return stem.substr(stem.rfind('/') + 1); }
  std::string journal_path(int64_t rank) const {
    return fmt::format("{}.{}{}.rows",
                       stem.substr(0, stem.rfind('/') + 1),
                       name(),
                       rank == 0 ? "" : fmt::format(".rank{}", rank));
  }
};

}  // namespace cytra::pipelines
