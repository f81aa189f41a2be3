#pragma once
#include <exception>
#include <string>

#include "base/files.h"
#include "base/log.h"
#include "pipelines/job/tally.h"

namespace cytra::pipelines {

/// Removes the folder that a run has made, when an error ended the run before any image was done.
/// Make this before any file in the folder is opened.
struct FolderOfResults {
  explicit FolderOfResults(const Tally& of) : tally(of) {}
  ~FolderOfResults() {
    const bool has_failed = tally.code != 0 || std::uncaught_exceptions() > 0;
    if (made.empty() || tally.done > 0 || !has_failed) return;
    log::set_file("");
    remove_all_quietly(made);
  }
  FolderOfResults& operator=(FolderOfResults&&) = delete;
  const Tally& tally;
  std::string made;  // "": the folder was there
};

}  // namespace cytra::pipelines
