#pragma once
// The work of the stages of a pipeline (reading, computing, writing ...), and the stage that the
// others wait for.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace cytra::perf {
class Scope;
}

namespace cytra::pipelines {

/// The times of a pipeline's stages: its threads report to it; any thread may ask at any time.
class StageReport {
 public:
  class Stage {
   public:
    /// `threads` do this work side by side.
    Stage(std::string name, int64_t threads) : name_(std::move(name)), threads_(threads) {}
    const std::string& name() const { return name_; }

   private:
    friend class StageReport;
    friend class StageWork;
    friend class StagePause;
    const std::string name_;
    const int64_t threads_;
    std::atomic<int64_t> items_{0}, busy_ns_{0};
  };
  /// busy_share: the busy share, 0 to 1, of the time that its threads had.
  struct Figures {
    std::string name;
    int64_t threads = 1, items = 0;
    double busy_s = 0, busy_share = 0;
  };

  /// The clock starts.
  explicit StageReport(std::string program);
  /// Adds a stage; the order is kept. The reference is valid as long as this object.
  Stage& add(const std::string& name, int64_t threads = 1);
  /// Adds to a number that is no time of a stage: "frames_dropped" becomes
  /// cytra_frames_dropped_total. `help` says what is counted.
  void count(const std::string& name, const std::string& help, int64_t by = 1);
  /// Stops the clock; a second call changes nothing.
  void finish();

  std::vector<Figures> figures() const;
  /// A row for each stage: threads, items, busy seconds, share, milliseconds of an item.
  std::string table() const;
  /// "inference is what the others wait for: busy 94 % of 12.3 s"; "" before any work.
  std::string bottleneck() const;
  /// Both in the log.
  void log_times() const;
  /// Prometheus' text format 0.0.4: cytra_stage_busy_seconds_total, cytra_stage_items_total,
  /// cytra_stage_threads with the labels program and stage, cytra_run_seconds, and what was
  /// counted.
  std::string prometheus() const;
  /// Writes prometheus() to a file, replaced as a whole: for node_exporter's textfile collector.
  /// Throws: IoError.
  void write_prometheus(const std::string& path) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  double seconds() const;

  struct Counter {
    std::string help;
    int64_t value = 0;
  };
  const std::string program_;
  const Time begin_;
  mutable std::mutex mutex_;
  Time end_{};  // guarded by mutex_, as all that follows
  std::list<Stage> stages_;
  std::map<std::string, Counter> counters_;
};

/// Adds its own lifetime, and `items`, to a stage; it is a perf::Scope of the stage's name, too.
class StageWork {
 public:
  explicit StageWork(StageReport::Stage& stage, int64_t items = 1);
  ~StageWork();
  StageWork& operator=(StageWork&&) = delete;

 private:
  StageReport::Stage& stage_;
  const int64_t items_;
  const std::unique_ptr<perf::Scope> scope_;
  const std::chrono::steady_clock::time_point begin_;
};

/// Marks, within a StageWork, the time in which the stage waits for another one.
class [[nodiscard]] StagePause {
 public:
  explicit StagePause(StageReport::Stage& stage)
      : stage_(stage), begin_(std::chrono::steady_clock::now()) {}
  ~StagePause();
  StagePause& operator=(StagePause&&) = delete;

 private:
  StageReport::Stage& stage_;
  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace cytra::pipelines
