#pragma once
#include <string>

#include "perf/transfers.h"

namespace cytra::training {

/// "aten::item of layer down.0, called by cytra::nn::pad".
std::string text_of(const perf::TransferPlace& place);
/// Writes FOLDER/table.txt of what was transferred in `count` of a `unit` ("step"), and logs its
/// first lines: those that wait first, then the largest.
void report_transfers(const perf::Transfers& transfers,
                      int64_t count,
                      const std::string& unit,
                      const std::string& folder);

}  // namespace cytra::training
