// SimpleProfiler: the time of each phase and hook. AdvancedProfiler: and of each operation. Source:
// lightning.pytorch.profilers.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/log.h"
#include "base/stopwatch.h"
#include "base/table.h"
#include "config/registry.h"
#include "perf/scopes.h"
#include "training/profiles.h"

namespace cytra::training {
namespace {
struct SimpleProfilerOptions {
  std::string dirpath = "profiler", filename = "table";
  void visit(auto& v) {
    v("dirpath", dirpath, "folder of the table; of trainer.profiler: profiler in the run folder");
    v("filename", filename, "file name of the table, without .txt");
    v("extended", config::Unused{{"true"}}, "of Lightning");
    v("line_count_restriction", config::Unused{{"1.0"}}, "of Lightning");
    v("dump_stats", config::Unused{{"false"}}, "of Lightning");
  }
};

class PhaseTimes final : public Profile, public perf::ScopeListener {
 public:
  PhaseTimes(Settings settings, std::string path, bool times_operations)
      : Profile(std::move(settings)),
        path_(std::move(path)),
        times_operations_(times_operations),
        listening_(std::in_place, *this, times_operations) {}

  void finish() override {
    listening_.reset();
    const double whole = stopwatch_.seconds();
    std::vector<std::pair<std::string, Total>> rows(totals_.begin(), totals_.end());
    std::ranges::sort(rows,
                      [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
    std::vector<std::vector<std::string>> lines{
        {"Action", "Mean duration (s)", "Num calls", "Total time (s)", "Percentage %"}};
    if (times_operations_) lines[0].emplace_back("Self time (s)");
    lines.push_back({"Total", "-", "-", fmt::format("{:.4g}", whole), "100 %"});
    if (times_operations_) lines.back().emplace_back("-");
    for (const auto& [name, total] : rows) {
      if (total.calls == 0) continue;  // cut off by an error
      const double time = total.time;
      constexpr std::size_t kWidth = 55;  // a name's, as in torch's tables
      lines.push_back({name.size() <= kWidth ? name : name.substr(0, kWidth - 3) + "...",
                       fmt::format("{:.4g}", time / static_cast<double>(total.calls)),
                       std::to_string(total.calls),
                       fmt::format("{:.4g}", time),
                       fmt::format("{:.2f} %", 100 * time / whole)});
      if (times_operations_) lines.back().push_back(fmt::format("{:.4g}", total.self));
    }
    const std::string table = format_table(lines);
    write_file(path_, table);
    constexpr std::size_t kMostLines = 40;
    if (lines.size() > kMostLines) lines.resize(kMostLines);
    log::info("where the time went ({}):\n{}", path_, format_table(lines));
  }

 private:
  struct Total {
    int64_t calls = 0, open = 0;
    double time = 0, self = 0;  // a call inside one of the same name is in `self` alone
  };
  struct Frame {
    Total* total;
    Stopwatch stopwatch = {};
    double inside = 0;
  };

  void begin(const char* name) override {
    Total& total = totals_[name];
    total.open += 1;
    frames_.push_back({&total});
  }
  void end() override {
    if (frames_.empty()) return;
    const Frame frame = frames_.back();
    frames_.pop_back();
    const double time = frame.stopwatch.seconds();
    Total& total = *frame.total;
    total.calls += 1;
    total.open -= 1;
    total.self += time - frame.inside;
    if (total.open == 0) total.time += time;
    if (!frames_.empty()) frames_.back().inside += time;
  }

  void step_ended() override {}

  const std::string path_;
  const bool times_operations_;
  const Stopwatch stopwatch_;
  std::unordered_map<std::string, Total> totals_;
  std::vector<Frame> frames_;
  std::optional<perf::Listening> listening_;
};

template <bool kTimesOperations>
struct PhaseProfiler final : ProfilingCallback {
  using Options = SimpleProfilerOptions;
  explicit PhaseProfiler(const Options& options) : options_(options) {}
  std::unique_ptr<Profile> begin(Context& context) override {
    return std::make_unique<PhaseTimes>(settings(context, options_.dirpath),
                                        options_.dirpath + "/" + options_.filename + ".txt",
                                        kTimesOperations);
  }
  const Options options_;
};
using SimpleProfiler = PhaseProfiler<false>;
using AdvancedProfiler = PhaseProfiler<true>;
CYTRA_REGISTER(Callback, SimpleProfiler, "SimpleProfiler");
CYTRA_REGISTER(Callback, AdvancedProfiler, "AdvancedProfiler");

}  // namespace
}  // namespace cytra::training
