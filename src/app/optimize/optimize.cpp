// `optimize --detect-bottlenecks`: runs the experiment for a while, and reports what holds it back
// and the change that helped most when tried. Nothing is kept.
#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "app/optimize/search.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/table.h"
#include "perf/machine_load.h"

namespace cytra::app {
namespace {

using config::Node;

const bool optimize_is_added = add_program<TrainConfig>("optimize");

void show_shares(const Figures& measured, cli::Results& results) {
  const Shares shares = measured.times.shares();
  const std::vector<std::tuple<const char*, const char*, double>> parts{
      {"data", "waiting for images, or for cores that load them", shares.data},
      {"transfer", "copies to and from the GPU", shares.transfer},
      {"sync", "callbacks, checks, reads of the GPU by the host", shares.sync},
      {"launch", "what a batch of any size takes, the loop itself", shares.launch},
      {"compute", "forward, backward, optimizer", shares.compute}};
  std::vector<std::vector<std::string>> rows{{"where the time goes", "share"}};
  for (const auto& [key, meaning, share] : parts) {
    if (share == 0 && key == std::string("transfer")) continue;  // a CPU
    results.add(key, std::round(share * 1e4) / 1e4);
    rows.push_back({meaning, fmt::format("{:.1f} %", 100 * share)});
  }
  for (const auto& [name, seconds] : measured.times.callbacks_s) {
    const double share = seconds / measured.times.wall_s;
    if (share >= 0.01)
      rows.push_back({"  callbacks." + name, fmt::format("{:.1f} %", 100 * share)});
  }
  log::info("{}", format_table(rows));
}

void show_transforms(const Facts& facts) {
  std::vector<std::vector<std::string>> rows{{"loading an image, on one thread", "ms", ""}};
  for (const TransformTime& one : facts.transforms) {
    rows.push_back({one.name,
                    fmt::format("{:.2f}", 1e3 * one.seconds),
                    one.is_cached && facts.miss_share == 0 ? "first epoch alone" : ""});
  }
  log::info("{}", format_table(rows));
}

void show_operators(const Figures& measured, cli::Results& results) {
  constexpr std::size_t kShown = 5;
  const bool gpu = measured.facts.is_on_gpu;
  std::vector<std::pair<double, std::string>> operators;
  double all = 0;
  for (const auto& [name, row] : measured.operators) {
    if (row.is_kernel || name.find("::") == std::string::npos) continue;  // scopes of the trainer
    operators.emplace_back(gpu ? row.self_cuda_us : row.self_cpu_us, name);
    all += operators.back().first;
  }
  if (all <= 0) return;
  std::sort(operators.rbegin(), operators.rend());
  operators.resize(std::min(operators.size(), kShown));
  std::vector<std::vector<std::string>> rows{{"operators", "share of all of them"}};
  for (const auto& [us, name] : operators) {
    rows.push_back({name, fmt::format("{:.1f} %", 100 * us / all)});
    results.add_item("operator", fmt::format("{} {:.1f} %", name, 100 * us / all));
  }
  log::info("{}", format_table(rows));
}

/// Tries the advice. Returns the best result and its advice; none where nothing is faster.
std::optional<std::pair<Tried, Advice>> try_advice(const Trials& trials,
                                                   const std::vector<Advice>& all,
                                                   double seconds) {
  std::optional<std::pair<Tried, Advice>> best;
  const double runs = perf::kPairs * static_cast<double>(all.size());  // most end early
  const Search search(runs_of(trials, seconds / runs));
  for (const Advice& advice : all) {
    const Tried tried = search.compare({}, advice.changes);
    const perf::Verdict& verdict = tried.verdict;
    log::info("tried {}: {}{}",
              text_of(trials.run(), advice.changes),
              tried.text(),
              verdict.is_gain || !tried.fits ? "" : ", which is no gain");
    if (verdict.is_gain && (!best || verdict.ratio > best->first.verdict.ratio))
      best.emplace(tried, advice);
  }
  return best;
}

void show_change(const Trials& trials,
                 const std::optional<std::pair<Tried, Advice>>& best,
                 cli::Results& results) {
  if (!best) {
    log::info("nothing that was tried makes it faster");
    results.add("change", Node());
    return;
  }
  const auto& [tried, advice] = *best;
  const std::string change = text_of(trials.run(), advice.changes);
  const bool changes_precision = advice.changes[0].first == "trainer.precision";
  std::string note = advice.note;
  if (changes_precision)
    note += fmt::format("; the loss of the first steps differs by {:+.3f} %",
                        100 * tried.loss_difference);
  log::info("change worth most: {}{}", change, note.empty() ? "" : " (" + note + ")");
  results.add("change", change);
  results.add("measured_gain", tried.verdict.ratio);
  if (changes_precision) results.add("loss_difference", tried.loss_difference);
  const std::string again = train_command(trials.run(), advice.changes);
  log::info("train with it:  {}", again);
  results.add("command", again);
}

int detect(cli::Run run, const TrainConfig& config) {
  watch_signals();
  const double seconds = config.optimize.seconds;
  const Trials trials(std::move(run), config);
  log::info("running the experiment for {:g} s on {}", seconds, device::describe(trials.device()));
  perf::warn_if_busy("optimize");
  const perf::MachineLoad load;
  Figures measured = trials.measure({}, seconds / 2, /*explains=*/true);
  const Shares shares = measured.times.shares();
  const Bound bound = shares.bound();
  log::info("{}: {:.0f} % of the time; {:.1f} images/s",
            name_of(bound),
            100 * shares.of(bound),
            measured.times.rate());
  cli::Results results(trials.run().json);
  results.add("bottleneck", name_of(bound));
  results.add("images_per_second", measured.times.rate());
  show_shares(measured, results);
  if (bound == Bound::data) show_transforms(measured.facts);
  show_operators(measured, results);
  if (shares.launch >= kBound) measured.facts.best_batch_size = trials.best_batch_size({});
  std::vector<Advice> advice = advise(measured.times, measured.facts);
  constexpr std::size_t kMost = 3;
  advice.resize(std::min(advice.size(), kMost));
  const auto best = try_advice(trials, advice, seconds / 2);
  load.report("optimize");
  show_change(trials, best, results);
  results.print();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_detect_bottlenecks(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::detect);
}
