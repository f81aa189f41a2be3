#include "training/transfer_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/table.h"

namespace cytra::training {

std::string text_of(const perf::TransferPlace& place) {
  return fmt::format("{}{}{}",
                     place.operation,
                     place.layer.empty() ? "" : " of layer " + place.layer,
                     place.code.empty() ? "" : ", called by " + place.code);
}

void report_transfers(const perf::Transfers& transfers,
                      int64_t count,
                      const std::string& unit,
                      const std::string& folder) {
  using Found = std::pair<perf::TransferPlace, perf::TransferCount>;
  std::vector<Found> rows(transfers.begin(), transfers.end());
  std::stable_sort(rows.begin(), rows.end(), [](const Found& a, const Found& b) {
    return std::make_pair(a.first.waits, a.second.bytes) >
           std::make_pair(b.first.waits, b.second.bytes);
  });
  std::vector<std::vector<std::string>> lines{
      {"Phase: operation", "Kind", "Waits", "Calls", "Bytes", "First " + unit}};
  const double units = static_cast<double>(std::max<int64_t>(count, 1));
  for (const auto& [place, found] : rows) {
    lines.push_back({fmt::format("{}: {}", place.phase, text_of(place)),
                     name_of(place.kind),
                     place.waits ? "yes" : "",
                     fmt::format("{:.4g}", static_cast<double>(found.calls) / units),
                     format_bytes(static_cast<double>(found.bytes) / units),
                     std::to_string(found.first_step)});
  }
  const std::string path = folder + "/table.txt";
  write_file(path,
             fmt::format("Calls and bytes are those of a {}, the mean of {}.\n", unit, count) +
                 format_table(lines));
  constexpr std::size_t kMostLines = 20;
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  log::info("transfers of a {}, the mean of {} ({}):\n{}", unit, count, path, format_table(lines));
}

}  // namespace cytra::training
