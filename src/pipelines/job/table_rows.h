#pragma once
// The rows of a table that a run takes.
#include <string>
#include <vector>

#include "data/manifest.h"
#include "pipelines/job/inputs.h"

namespace cytra::pipelines {

/// The samples of the rows that options.split names; with targets, and without it, of those that
/// nothing was learned from. With on_error=skip a row whose images are missing goes to `leave_out`
/// under the cell of `key`. Throws: ConfigError, DataError.
std::vector<data::Sample> read_rows(const data::Manifest& manifest,
                                    const InputOptions& options,
                                    const InputWants& wants,
                                    const std::string& key,
                                    const LeaveOut& leave_out);

}  // namespace cytra::pipelines
