#pragma once
#include <exception>
#include <filesystem>
#include <string>

#include "base/log.h"
#include "pipelines/job/tally.h"

namespace cytra::pipelines {

/// The folder that a run has made is removed with this when an error let nothing come of any image.
/// To be made before what is open in the folder.
struct FolderOfResults {
  explicit FolderOfResults(const Tally& its_books) : tally(its_books) {}
  ~FolderOfResults() {
    const bool has_failed = tally.code != 0 || std::uncaught_exceptions() > 0;
    if (made.empty() || tally.done > 0 || !has_failed) return;
    log::set_file("");
    std::error_code ignored;
    std::filesystem::remove_all(made, ignored);
  }
  FolderOfResults(const FolderOfResults&) = delete;
  FolderOfResults& operator=(const FolderOfResults&) = delete;
  const Tally& tally;
  std::string made;  // "": the folder was there
};

}  // namespace cytra::pipelines
