// One save of a checkpoint under every failure of the system that can be thought of. Full counts:
// CYTRA_FULL=1, which tests/reliability/run.py --full sets. The model of a power cut follows
// SQLite's crash tests and "All File Systems Are Not Created Equal" (Pillai et al., OSDI 2014).
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/node.h"
#include "io/safetensors.h"
#include "tests/reliability/faults.h"
#include "tests/support/tmp_dir.h"
#include "training/find_checkpoint.h"
#include "training/trainer/checkpoint_writer.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Event;
using test::Fault;

bool is_full() {
  return std::getenv("CYTRA_FULL") != nullptr;
}

/// The checkpoints of a training: epoch_N.ckpt and, the same file, last.ckpt; that before goes.
class Saves {
 public:
  explicit Saves(std::string run) : run_(std::move(run)) { make_folders(folder()); }
  std::string folder() const { return run_ + "/checkpoints"; }
  std::string path(int64_t number) const {
    return folder() + "/epoch_" + std::to_string(number) + ".ckpt";
  }
  /// Saves the state numbered `number`. Throws: as the writer.
  void save(int64_t number, int64_t values = 2000) {
    training::Snapshot snapshot;
    snapshot.tensors["model.a"] = at::full({values}, number, at::kFloat);
    snapshot.tensors["model.b"] = at::full({3}, number, at::kLong);
    snapshot.metadata["state"] =
        "{\"step\": " + std::to_string(number) + ", \"best_path\": \"" + path(number) + "\"}";
    training::CheckpointWriter writer;
    writer.write(snapshot, {path(number), folder() + "/last.ckpt"}, {path(number - 1)});
    writer.wait();
  }
  /// The number of the newest checkpoint that is found, as its tensors say; 0: none.
  int64_t found() const {
    std::string path;
    try {
      path = training::find_checkpoint("last", run_);
    } catch (const DataError&) {  // there are some, none is whole
    }
    if (path.empty()) return 0;
    const io::SafetensorsFile file(path);
    file.verify();
    const auto* number = static_cast<const int64_t*>(file.tensors().at("model.b").data);
    const auto state = config::parse_yaml(file.metadata().at("state"), path);
    EXPECT_EQ(state.get<int64_t>("step"), *number);
    return *number;
  }
  bool is_clean() const {
    for (const auto& entry : fs::directory_iterator(folder())) {
      if (entry.path().string().find(".tmp.") != std::string::npos) return false;
    }
    return true;
  }

 private:
  std::string run_;
};

/// What the save of state 2 over state 1 ended with: "" for none, or its error.
std::string save_with(const Saves& saves, Fault fault, int at) {
  std::string error;
  test::watch_calls(saves.folder(), fault, at);
  try {
    Saves(saves).save(2);
  } catch (const Error& caught) {
    error = caught.what();
  }
  test::end_watching();
  return error;
}

int count_calls() {
  const test::TmpDir dir;
  Saves saves(dir / "run");
  saves.save(1);
  test::watch_calls(saves.folder());
  saves.save(2);
  return test::end_watching();
}

TEST(Save, SurvivesAFailureOfEverySystemCall) {
  const int calls = count_calls();
  ASSERT_GE(calls, 15);
  const std::map<Fault, std::string> texts{{Fault::eio, "Input/output error"},
                                           {Fault::enospc, "No space left on device"},
                                           {Fault::eintr, "?"},
                                           {Fault::short_write, "?"}};
  int cases = 0, errors = 0;
  for (const auto& [fault, text] : texts) {
    for (int at = 1; at <= calls; ++at, ++cases) {
      SCOPED_TRACE("fault " + text + " at call " + std::to_string(at));
      const test::TmpDir dir;
      Saves saves(dir / "run");
      saves.save(1);
      const std::string error = save_with(saves, fault, at);
      if (!error.empty()) {
        ++errors;
        EXPECT_TRUE(error.starts_with(saves.folder())) << error;
        EXPECT_NE(error.find(": " + text + "; "), std::string::npos) << error;
        EXPECT_NE(error.find("paths.output_dir="), std::string::npos) << error;
      }
      EXPECT_GE(saves.found(), error.empty() ? 2 : 1);
      EXPECT_TRUE(saves.is_clean());
      saves.save(3);  // the fault is over
      EXPECT_EQ(saves.found(), 3);
    }
  }
  EXPECT_GT(errors, calls);
  RecordProperty("cases", cases);
}

TEST(Save, SurvivesTheEndOfTheProcessAtEverySystemCall) {
  const int calls = count_calls();
  int cases = 0;
  for (const Fault fault : {Fault::exit_before, Fault::exit_half}) {
    for (int at = 1; at <= calls; ++at, ++cases) {
      SCOPED_TRACE(at);
      const test::TmpDir dir;
      Saves saves(dir / "run");
      saves.save(1);
      const pid_t child = ::fork();
      if (child == 0) {
        save_with(saves, fault, at);
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      ASSERT_EQ(WEXITSTATUS(status), 99);
      EXPECT_GE(saves.found(), 1);
      EXPECT_TRUE(saves.is_clean());  // since the search above
      saves.save(3);
      EXPECT_EQ(saves.found(), 3);
    }
  }
  RecordProperty("cases", cases);
}

/// A disk of which only what was flushed is sure. What was not may be there in part.
class Disk {
 public:
  void apply(const Event& event) {
    switch (event.op) {
      case Event::Op::create: {
        const int inode = static_cast<int>(files_.size());
        files_.push_back({});
        inode_of_file_[event.file] = inode;
        names_[event.name] = inode;
        changes_.push_back({{event.name, inode}});
        break;
      }
      case Event::Op::write:
        files_[file(event)].written.push_back(event.data);
        break;
      case Event::Op::sync: {
        File& synced = files_[file(event)];
        for (const std::string& data : synced.written) synced.sure += data;
        synced.written.clear();
        break;
      }
      case Event::Op::rename:
      case Event::Op::link: {
        const int inode = names_.at(event.name);
        std::map<std::string, int> change{{event.to, inode}};
        const bool is_same = names_.count(event.to) > 0 && names_[event.to] == inode;
        if (event.op == Event::Op::rename && !is_same) {  // else rename() does nothing
          change[event.name] = -1;
          names_.erase(event.name);
        }
        names_[event.to] = inode;
        changes_.push_back(change);
        break;
      }
      case Event::Op::unlink:
        names_.erase(event.name);
        changes_.push_back({{event.name, -1}});
        break;
      case Event::Op::sync_folder:
        for (const auto& change : changes_) merge(sure_names_, change);
        changes_.clear();
        break;
      case Event::Op::saved:
        break;
    }
  }

  /// Writes into `folder` what a power cut may leave. `data`, `names`: the probability that what
  /// was not flushed is there.
  void cut(const std::string& folder, double data, double names, std::mt19937& random) const {
    std::uniform_real_distribution<double> draw(0, 1);
    std::map<std::string, int> left = sure_names_;
    for (const auto& change : changes_) {
      if (draw(random) < names) merge(left, change);
    }
    const auto begin = fs::file_time_type::clock::now();
    for (const auto& [name, inode] : left) {
      const File& file = files_[static_cast<std::size_t>(inode)];
      std::string content = file.sure;
      for (const std::string& written : file.written) {
        if (draw(random) < data)
          content += written;
        else
          content += std::string(written.size(), '\0');  // the length came, the data did not
      }
      if (data == 0) content = file.sure;
      std::ofstream(folder + "/" + name) << content;
      fs::last_write_time(folder + "/" + name, begin + std::chrono::seconds(inode));
    }
  }

 private:
  struct File {
    std::string sure;
    std::vector<std::string> written;  // since it was flushed
  };
  static void merge(std::map<std::string, int>& names, const std::map<std::string, int>& change) {
    for (const auto& [name, inode] : change) {
      if (inode < 0)
        names.erase(name);
      else
        names[name] = inode;
    }
  }
  std::size_t file(const Event& event) const {
    return static_cast<std::size_t>(inode_of_file_.at(event.file));
  }
  std::vector<File> files_;
  std::map<int, int> inode_of_file_;
  std::map<std::string, int> names_, sure_names_;
  std::vector<std::map<std::string, int>> changes_;  // of names, not flushed
};

/// What happens in the folder of a run's checkpoints during so many saves.
std::vector<Event> events_of(int64_t saves) {
  const test::TmpDir dir;
  Saves written(dir / "run");
  test::watch_calls(written.folder());
  for (int64_t number = 1; number <= saves; ++number) {
    written.save(number, 200);
    test::events().push_back({Event::Op::saved, "", "", 0, ""});
  }
  test::end_watching();
  return std::move(test::events());
}

struct PowerCuts {
  int states = 0, lost = 0;  // lost: no checkpoint, or one older than reported as saved
};
PowerCuts cut_after_each(const std::vector<Event>& events) {
  std::mt19937 random(7);
  Disk disk;
  int64_t saved = 0;
  PowerCuts cuts;
  for (const Event& event : events) {
    disk.apply(event);
    if (event.op == Event::Op::saved) ++saved;
    for (const auto& [data, names] :
         std::vector<std::pair<double, double>>{{0, 0}, {0, 1}, {1, 0}, {0.5, 0.5}, {0.2, 0.8}}) {
      const test::TmpDir other;
      Saves left(other / "run");
      disk.cut(left.folder(), data, names, random);
      ++cuts.states;
      if (left.found() < saved) ++cuts.lost;
    }
  }
  return cuts;
}

TEST(Save, SurvivesAPowerCut) {
  const PowerCuts cuts = cut_after_each(events_of(is_full() ? 50 : 8));
  EXPECT_EQ(cuts.lost, 0);
  EXPECT_GE(cuts.states, 500);
  RecordProperty("cases", cuts.states);
}

TEST(Save, APowerCutLosesWhatIsNotFlushed) {  // the test above can fail
  log::set_level(log::Level::error);
  for (const Event::Op op : {Event::Op::sync, Event::Op::sync_folder}) {
    std::vector<Event> events = events_of(2);
    const auto is_flush = [op](const Event& event) { return event.op == op; };
    events.erase(std::remove_if(events.begin(), events.end(), is_flush), events.end());
    EXPECT_GT(cut_after_each(events).lost, 0);
  }
  log::set_level(log::Level::info);
}

/// Saves under conditions that a trial sets, until the old state survived all of them.
template <class Limit>
void survive(const std::string& folder, const std::string& text, Limit limit, int least_failures) {
  const int trials = is_full() ? 200 : 40;
  log::set_level(log::Level::error);  // not of each that there is little space
  std::mt19937 random(11);
  int failures = 0;
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(trial);
    Saves saves(folder + "/run");
    saves.save(1, 20000);
    std::string error;
    {
      const auto until_here = limit(random);
      try {
        saves.save(2, 20000);
      } catch (const IoError& caught) {
        error = caught.what();
      }
    }
    failures += error.empty() ? 0 : 1;
    if (!error.empty()) {
      EXPECT_NE(error.find(text), std::string::npos) << error;
    }
    EXPECT_EQ(saves.found(), error.empty() ? 2 : 1);
    EXPECT_TRUE(saves.is_clean());
    fs::remove_all(folder + "/run");
  }
  log::set_level(log::Level::info);
  EXPECT_GE(failures, least_failures);
  EXPECT_LT(failures, trials);
  ::testing::Test::RecordProperty("cases", trials);
}

TEST(Save, SurvivesAFullDisk) {
  const test::TmpDir dir;
  if (::mount("none", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "can't mount a tmpfs";
  struct Filled {
    std::string path;
    ~Filled() { fs::remove(path); }
  };
  survive(
      dir.path(),
      "No space left on device; free some space",
      [&](std::mt19937& random) {
        const auto free = fs::space(dir.path()).available;
        const auto left = std::uniform_int_distribution<std::size_t>(0, 120'000)(random);
        std::ofstream(dir / "filling")
            << std::string(free - std::min<std::size_t>(free, left), 'x');
        return Filled{dir / "filling"};
      },
      10);
  ::umount(dir.path().c_str());
}

TEST(Save, SurvivesALimitOfFileSizes) {
  std::signal(SIGXFSZ, SIG_IGN);  // as the programs do
  struct Limited {
    rlimit before;
    ~Limited() { ::setrlimit(RLIMIT_FSIZE, &before); }
  };
  const test::TmpDir dir;
  survive(
      dir.path(),
      "File too large; free some space",
      [](std::mt19937& random) {
        Limited limited{};
        ::getrlimit(RLIMIT_FSIZE, &limited.before);
        rlimit now = limited.before;
        now.rlim_cur = std::uniform_int_distribution<rlim_t>(0, 120'000)(random);
        ::setrlimit(RLIMIT_FSIZE, &now);
        return limited;
      },
      10);
}

}  // namespace
}  // namespace cytra
