#include "cli/multirun.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/child_process.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_log.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "base/strings.h"

namespace cytra::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t max_output = std::size_t{16} << 20;  // bytes of a job's stdout that are kept

/// The mean of the scores of jobs that repeat each other.
struct Mean {
  std::string setting, metric;
  std::size_t jobs = 0;
  double mean = 0, squares = 0;  // the sum of squared distances to the mean
  double deviation() const { return std::sqrt(squares / static_cast<double>(jobs - 1)); }
};

struct JobState {
  pid_t pid = 0;
  bool started = false;
  int exit_code = 0;
  Stopwatch stopwatch;
  double seconds = 0;
  std::string error;  // its last message when it failed
  std::optional<double> score;
  std::string metric, mode;  // of the score: "val/dice", "max"
};

/// Reads up to `bytes` of a file's end; "" when it can't be read.
std::string read_tail(const std::string& path, std::size_t bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<std::size_t>(file.tellg());
  std::string text(std::min(size, bytes), '\0');
  file.seekg(static_cast<std::streamoff>(size - text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

/// The last error of a log, or its last line.
std::string reason_in(const std::string& log) {
  const std::string whole = trim(log);
  const std::size_t error = whole.rfind("error: ");
  const std::size_t begin = error == std::string::npos ? whole.find_last_of("\r\n") + 1 : error + 7;
  return one_line(whole.substr(begin, whole.find_first_of("\r\n", begin) - begin));
}

/// Takes the score of a job: the best of a training (`best_score`, `best_metric`, `best_mode`), or
/// for other programs the number that `monitor` names, with its `mode`.
void take_score(const Json& results, JobState& state) {
  const auto text = [&](const char* key) {
    const Json value = results.value(key, Json());
    return value.is_string() ? value.get<std::string>() : "";
  };
  const bool is_best = results.contains("best_score");
  state.metric = text(is_best ? "best_metric" : "monitor");
  state.mode = text(is_best ? "best_mode" : "mode");
  const Json score = results.value(is_best ? "best_score" : state.metric, Json());
  if (score.is_number()) state.score = score.get<double>();
}

std::string clipped(const std::string& text, std::size_t size) {
  if (text.size() <= size) return text;
  std::size_t end = size - 3;  // not in the middle of a character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

class Runner {
 public:
  Runner(const std::vector<Job>& jobs, const JobOptions& options)
      : jobs_(jobs), options_(options), states_(jobs.size()) {
    for (const Job& job : jobs)
      make_folders(std::filesystem::path(job.folder).parent_path().string());
    // Signals are blocked until we ask for them, so none gets lost in between.
    ::sigemptyset(&waited_);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&waited_, signal);
    ::pthread_sigmask(SIG_BLOCK, &waited_, &old_mask_);
    struct sigaction action {};
    action.sa_handler = SIG_DFL;  // where SIGCHLD is ignored, children leave no exit code
    ::sigaction(SIGCHLD, &action, &old_action_);
  }
  ~Runner() {
    ::sigaction(SIGCHLD, &old_action_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }
  Runner& operator=(Runner&&) = delete;

  int run() {
    const std::size_t parallel = static_cast<std::size_t>(std::max(options_.parallel, 1));
    for (;;) {
      take_signals(false);
      while (signal_ == 0 && next_ < jobs_.size() && running_ < parallel) start(next_++);
      if (running_ == 0 && (signal_ != 0 || next_ == jobs_.size())) break;
      if (running_ > 0) take_signals(true);
    }
    print_table();
    options_.json ? print_json() : print_text();
    if (signal_ != 0) return 128 + signal_;
    for (const JobState& state : states_) {
      if (state.exit_code != 0) return state.exit_code;
    }
    return 0;
  }

 private:
  std::string file_of(std::size_t i, const char* name) const { return jobs_[i].folder + name; }

  void start(std::size_t i) {
    JobState& state = states_[i];
    const Job& job = jobs_[i];
    state.started = true;
    state.stopwatch = {};
    log::info("job {} starts ({} of {}): {}", job.number, i + 1, jobs_.size(), one_line(job.label));
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
    const int log = ::open(file_of(i, ".log").c_str(), flags, 0666);
    const int out = log < 0 ? -1 : ::open(file_of(i, ".out").c_str(), flags, 0666);
    ChildOptions child;
    child.program = options_.program;
    child.arguments = job.arguments;
    child.out = out;
    child.err = log;
    child.blocked = old_mask_;
    child.has_own_group = true;  // Ctrl-C reaches the job once, from us
    state.pid = out < 0 ? -1 : start_child(child);
    const int error = errno;
    for (const int file : {log, out}) {
      if (file >= 0) ::close(file);
    }
    if (state.pid > 0) {
      ++running_;
      return;
    }
    state.exit_code = 4;
    state.error = fmt::format("can't start: {}", std::strerror(error));
    report(i);
  }

  /// Handles every signal that came. `wait`: waits for one, but at most a second, since a thread
  /// of a library may have taken the signal of a job's end.
  void take_signals(bool wait) {
    for (;; wait = false) {
      const timespec patience{wait ? 1 : 0, 0};
      const int signal = ::sigtimedwait(&waited_, nullptr, &patience);
      if (signal < 0 && wait && errno == EINTR) continue;
      if (signal < 0) break;
      if (signal != SIGCHLD) interrupt(signal);
    }
    for (std::size_t i = 0; i < next_; ++i) {
      if (states_[i].pid <= 0) continue;
      if (const std::optional<ChildEnd> end = end_of(states_[i].pid)) finish(i, *end);
    }
  }

  void interrupt(int signal) {
    ++interrupts_;
    if (signal_ == 0) signal_ = signal;
    log::warn("{}: {} running jobs are told to stop", ::strsignal(signal), running_);
    for (const JobState& state : states_) {
      if (state.pid > 0) ::kill(-state.pid, interrupts_ < 3 ? signal : SIGKILL);
    }
  }

  void finish(std::size_t i, const ChildEnd& end) {
    JobState& state = states_[i];
    state.pid = 0;
    --running_;
    state.seconds = state.stopwatch.seconds();
    state.exit_code = end.exit_code;
    if (state.exit_code != 0) state.error = reason_in(read_tail(file_of(i, ".log"), 8192));
    if (end.signal != 0) state.error = end.text() + (state.error.empty() ? "" : "; " + state.error);
    const std::string output = read_tail(file_of(i, ".out"), max_output);
    const Json results = Json::parse(output, nullptr, false);
    if (results.is_object()) take_score(results, state);
    keep_output(i, output);
    report(i);
  }

  /// The job with the best score; none when no job has one, or their metrics differ.
  std::optional<std::size_t> best_job() const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const JobState& state = states_[i];
      if (!state.score || state.mode.empty()) continue;
      if (!best) best = i;
      const JobState& other = states_[*best];
      if (state.metric != other.metric || state.mode != other.mode) return {};
      if (state.mode == "max" ? *state.score > *other.score : *state.score < *other.score) best = i;
    }
    return best;
  }

  /// The means, one for each setting and metric of two jobs or more.
  std::vector<Mean> means() const {
    std::vector<Mean> means;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const JobState& state = states_[i];
      if (!state.score) continue;
      auto own = std::ranges::find_if(means, [&](const Mean& mean) {
        return mean.setting == jobs_[i].setting && mean.metric == state.metric;
      });
      if (own == means.end()) own = means.insert(own, {jobs_[i].setting, state.metric});
      const double distance = *state.score - own->mean;  // Welford's sums
      own->mean += distance / static_cast<double>(++own->jobs);
      own->squares += distance * (*state.score - own->mean);
    }
    const auto is_single = [](const Mean& mean) { return mean.jobs < 2; };
    std::erase_if(means, is_single);
    return means;
  }

  /// Appends a job's results to its log, after the messages.
  void keep_output(std::size_t i, const std::string& text) const {
    std::ofstream(file_of(i, ".log"), std::ios::binary | std::ios::app) << text;
  }
  std::string take_output(std::size_t i) const {
    const std::string path = file_of(i, ".out");
    std::string text = states_[i].started ? read_tail(path, max_output) : "";
    ::unlink(path.c_str());
    return text;
  }

  void report(std::size_t i) {
    const JobState& state = states_[i];
    const std::string time = format_seconds(state.seconds);
    if (state.exit_code == 0) return log::info("job {} done in {}", jobs_[i].number, time);
    log::write(log::Level::error,
               fmt::format("job {} failed after {}, exit code {}: {} ({})",
                           jobs_[i].number,
                           time,
                           state.exit_code,
                           clipped(state.error, 300),
                           file_of(i, ".log")));
  }

  void print_table() const {
    if (log::is_json()) return;  // stderr is for programs, which read the results
    std::size_t width = 9;
    for (const Job& job : jobs_)
      width = std::max(width, std::min<std::size_t>(job.label.size(), 60));
    const std::optional<std::size_t> best = best_job();
    const std::string score =
        best && !states_[*best].metric.empty() ? states_[*best].metric : "score";
    const std::size_t score_width = std::max<std::size_t>(score.size(), 10);
    std::string text = fmt::format("{:>5}  {:<{}}  {:>{}}  {:>4}  {:>7}  error\n",
                                   "job",
                                   "overrides",
                                   width,
                                   score,
                                   score_width,
                                   "exit",
                                   "time");
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const JobState& state = states_[i];
      text += fmt::format(
          "{:>5}  {:<{}}  {:>{}}  {:>4}  {:>7}  {}\n",
          jobs_[i].number,
          clipped(one_line(jobs_[i].label), 60),
          width,
          state.score ? fmt::format("{}{:.6g}", best == i ? "*" : "", *state.score) : "-",
          score_width,
          state.started ? std::to_string(state.exit_code) : "-",
          state.started ? format_seconds(state.seconds) : "-",
          state.started ? clipped(state.error, 100) : "not started");
    }
    for (const Mean& mean : means()) {
      text += fmt::format("{}{}: mean {:.6g}, deviation {:.3g} ({} jobs)\n",
                          mean.setting.empty() ? "" : clipped(one_line(mean.setting), 60) + ": ",
                          mean.metric,
                          mean.mean,
                          mean.deviation(),
                          mean.jobs);
    }
    std::fwrite(text.data(), 1, text.size(), stderr);
  }

  void print_text() const {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const JobState& state = states_[i];
      std::string text = fmt::format("{}job: {}\noverrides: {}\n",
                                     i == 0 ? "" : "\n",
                                     jobs_[i].number,
                                     one_line(jobs_[i].label));
      if (state.started) {
        text += fmt::format("exit_code: {}\nseconds: {:.3f}\nfolder: {}\n{}",
                            state.exit_code,
                            state.seconds,
                            jobs_[i].folder,
                            take_output(i));
      }
      if (text.back() != '\n') text += '\n';
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    if (const auto best = best_job()) std::printf("\nbest_job: %d\n", jobs_[*best].number);
    std::fflush(stdout);
  }

  void print_json() const {
    Json all{{"jobs", Json::array()}};
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const JobState& state = states_[i];
      Json row = {{"number", jobs_[i].number}, {"overrides", jobs_[i].label}};
      row["exit_code"] = state.started ? Json(state.exit_code) : Json();
      row["seconds"] = state.started ? Json(state.seconds) : Json();
      row["folder"] = jobs_[i].folder;
      if (!state.error.empty()) row["error"] = state.error;
      Json result = Json::parse(take_output(i), nullptr, false);
      if (!result.is_discarded()) row["result"] = std::move(result);
      all["jobs"].push_back(std::move(row));
    }
    for (const Mean& mean : means()) {
      all["means"].push_back({{"overrides", mean.setting},
                              {"metric", mean.metric},
                              {"mean", mean.mean},
                              {"deviation", mean.deviation()},
                              {"jobs", mean.jobs}});
    }
    if (const auto best = best_job()) all["best_job"] = jobs_[*best].number;
    std::puts(all.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  }

  const std::vector<Job>& jobs_;
  const JobOptions& options_;
  std::vector<JobState> states_;
  std::size_t next_ = 0, running_ = 0;
  int signal_ = 0, interrupts_ = 0;
  sigset_t waited_{}, old_mask_{};
  struct sigaction old_action_ {};
};

}  // namespace

int run_jobs(const std::vector<Job>& jobs, const JobOptions& options) {
  return Runner(jobs, options).run();
}

}  // namespace cytra::cli
