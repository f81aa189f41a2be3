// Trainings of two processes, forked from a program that has no threads yet, hence one of its own.
#include "training/processes/processes.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "nn/sync_batch_norm.h"
#include "tests/support/tmp_dir.h"
#include "tests/training/fixture.h"
#include "training/processes/gradient_average.h"
#include "training/processes/process_group.h"
#include "training/trainer/stop_condition.h"

namespace cytra {
namespace {
using namespace std::chrono_literals;
using test::Tiny;
using training::Processes;
using training::ProcessPlace;

constexpr const char *kSgd = "{_target_: SGD, lr: 0.1, momentum: 0.9}",
                     *kConstantRate = "{_target_: ConstantLR, factor: 1.0}";

/// What each rank's work returned, or the error it threw. Those that are stopped (SIGSTOP) go on
/// when all others have ended.
std::vector<std::string> together(const std::function<std::string(Processes&)>& work,
                                  double timeout_s = 60,
                                  int64_t size = 2) {
  const test::TmpDir dir;
  int port[2];
  EXPECT_EQ(::pipe(port), 0);
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < size; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    std::string result;
    ProcessPlace place{rank, size, rank, size};
    place.token = "a secret";
    if (rank > 0 && ::read(port[0], &place.port, sizeof place.port) != sizeof place.port)
      std::_Exit(9);
    {
      Processes processes(place, timeout_s);
      for (int64_t other = 1; rank == 0 && other < size; ++other) {
        const uint16_t number = processes.place().port;
        if (::write(port[1], &number, sizeof number) != sizeof number) std::_Exit(9);
      }
      try {
        processes.guard([&] {
          processes.join(c10::kCPU, "logs");
          result = work(processes);
          processes.finish();
        });
      } catch (const std::exception& error) {
        result = fmt::format("error {}: {}", exit_code(error), error.what());
      }
    }
    write_file(dir / std::to_string(rank), result);
    std::_Exit(0);
  }
  std::vector<std::string> results;
  std::vector<pid_t> stopped;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    if (WIFSTOPPED(status)) stopped.push_back(child);
  }
  for (const pid_t child : stopped) {
    ::kill(child, SIGCONT);
    ::waitpid(child, nullptr, 0);
  }
  for (int64_t rank = 0; rank < size; ++rank) {
    const std::string path = dir / std::to_string(rank);
    results.push_back(std::filesystem::exists(path) ? read_file(path) : "ended by a signal");
  }
  ::close(port[0]);
  ::close(port[1]);
  return results;
}

/// The training of the fixture, each process with its share.
struct Share {
  Share(Processes* processes, const std::string& options)
      : tiny(options, "{}", 0, kSgd, kConstantRate, processes),
        place(processes ? processes->place() : ProcessPlace()) {}
  Share& fit(int64_t images, int64_t batch_size, int64_t valid) {
    data::DataLoader train = loader(images, batch_size, true), test = loader(valid, 1, false);
    tiny.trainer->fit(train, test);
    return *this;
  }
  data::DataLoader loader(int64_t images, int64_t batch_size, bool is_train) const {
    data::DataLoaderSpec spec = test::loader_spec(images, batch_size, is_train);
    spec.rank = place.rank;
    spec.world_size = place.size;
    spec.pad = is_train;
    if (edit) edit(spec);
    return data::DataLoader(std::move(spec));
  }
  /// "step weight bias metric".
  std::string result() const {
    const std::vector<double> weights = tiny.weights();
    return fmt::format(
        "{} {} {} {}",
        tiny.state().step,
        weights[0],
        weights[1],
        tiny.state().metrics.count("val/loss") ? tiny.state().metrics.at("val/loss") : 0);
  }
  Tiny tiny;
  ProcessPlace place;
  std::function<void(data::DataLoaderSpec&)> edit;
};

std::vector<double> numbers(const std::string& text) {
  std::vector<double> all;
  std::istringstream stream(text);
  for (double value = 0; stream >> value;) all.push_back(value);
  return all;
}

/// Two processes with batches of 2 and one with 4 learn the same, and see the same metrics, though
/// one process has more of the 3 images for validation.
void expect_as_one(const std::string& options) {
  const std::vector<std::string> two = together(
      [&](Processes& processes) { return Share(&processes, options).fit(16, 2, 3).result(); });
  const std::string one = together(
      [&](Processes&) { return Share(nullptr, options).fit(16, 4, 3).result(); }, 60, 1)[0];
  EXPECT_EQ(two[0], two[1]);
  const std::vector<double> expected = numbers(one), got = numbers(two[0]);
  ASSERT_EQ(expected.size(), 4U) << one;
  ASSERT_EQ(got.size(), 4U) << two[0];
  EXPECT_EQ(got[0], expected[0]);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
}

TEST(Processes, TwoLearnAsOneWithLargerBatches) {
  expect_as_one("max_epochs: 3, gradient_clip_val: 0.5");
}

TEST(Processes, TwoAccumulateAsOne) {
  expect_as_one("max_epochs: 3, accumulate_grad_batches: 3");
}

TEST(Processes, AverageAGroupThatIsTakenUpInItsMiddle) {
  const std::vector<std::string> two = together([](Processes& processes) {
    Share share(&processes, "max_epochs: 1, max_steps: 1, accumulate_grad_batches: 4");
    share.tiny.trainer->state().batch = 2;
    return share.fit(16, 1, 2).result();
  });
  EXPECT_EQ(two[0], two[1]);
}

TEST(Processes, BatchNormsOfTwoAreThoseOfOne) {
  const auto gradients = [](Processes& processes) {
    at::manual_seed(3);
    const auto model = make<nn::Model>(config::parse_yaml(
        "{_target_: DynUNet, filters: [4, 8], norm_name: batch, in_channels: 1, out_channels: 1}",
        "test"));
    EXPECT_GT(nn::sync_batch_norms(*model, [&](const at::Tensor& t) { processes.sum({t}); }), 2);
    const at::Tensor images = at::randn({4, 1, 16, 16}), targets = at::rand({4, 1, 16, 16});
    const ProcessPlace& place = processes.place();
    const int64_t count = 4 / place.size;
    const auto own = [&](const at::Tensor& of_all) {
      return of_all.narrow(0, place.rank * count, count);
    };
    ((*model)(own(images)) - own(targets)).square().mean().backward();
    std::string text;
    for (const auto& parameter : model->parameters())
      text += fmt::format("{} ", processes.mean(parameter.grad().flatten()[0]).item<double>());
    for (const auto& buffer : model->buffers())
      text += fmt::format("{} ", buffer.sum().item<double>());
    return text;
  };
  const std::vector<double> one = numbers(together(gradients, 60, 1)[0]);
  const std::vector<std::string> two = together(gradients);
  EXPECT_EQ(two[0], two[1]);
  const std::vector<double> got = numbers(two[0]);
  ASSERT_EQ(got.size(), one.size()) << two[0];
  ASSERT_GT(got.size(), 10U);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], one[i], 1e-5 + 1e-4 * std::abs(one[i])) << i;
}

TEST(Processes, SumMeanBroadcast) {
  const std::vector<std::string> three = together(
      [](Processes& processes) {
        const auto rank = static_cast<double>(processes.place().rank);
        const at::Tensor sums = at::tensor({rank, 1.0}, at::kFloat),
                         whole = at::tensor({int64_t{1} << 40}, at::kLong),
                         shared = at::full({2}, rank);
        processes.sum({sums, whole});
        processes.broadcast({shared});
        const at::Tensor mean = processes.mean(at::full({}, rank));
        return fmt::format("{} {} {} {} {}",
                           sums[0].item<double>(),
                           sums[1].item<double>(),
                           whole.item<int64_t>() == int64_t{3} << 40,
                           shared[1].item<double>(),
                           mean.item<double>());
      },
      60,
      3);
  for (const std::string& result : three) EXPECT_EQ(result, "3 3 true 0 1");
}

TEST(Processes, GatherRowsOfUnevenNumbers) {
  const std::vector<std::string> three = together(
      [](Processes& processes) {
        const int64_t rank = processes.place().rank;
        const at::Tensor none = processes.gather(at::zeros({0, 2}, at::kDouble));
        const at::Tensor own = at::full({rank == 1 ? 0 : rank + 1, 2}, rank + 0.1, at::kDouble);
        const at::Tensor all = processes.gather(own);
        const auto* const values = all.const_data_ptr<double>();
        return fmt::format("{} {}x{}: {}",
                           none.size(0),
                           all.size(0),
                           all.size(1),
                           fmt::join(values, values + all.numel(), " "));
      },
      60,
      3);
  for (const std::string& result : three)
    EXPECT_EQ(result, "0 4x2: 0.1 0.1 2.1 2.1 2.1 2.1 2.1 2.1");
}

// A batch is missing in one process, as its images are damaged: all do equally many steps.
TEST(Processes, KeepStepWhenBatchesAreMissing) {
  struct Broken final : data::Transform {
    void apply(data::Sample& sample, Rng&) const override {
      if (std::stoi(sample.id) < 5) throw DataError(sample.id + ": damaged");
    }
  };
  for (const char* options : {"max_epochs: 2", "max_epochs: 2, accumulate_grad_batches: 2"}) {
    const std::vector<std::string> two = together([&](Processes& processes) {
      Share share(&processes, options);
      share.edit = [](data::DataLoaderSpec& spec) {
        if (!spec.shuffle) return;
        spec.options.on_error = "skip";
        spec.transforms.insert(spec.transforms.begin(), std::make_shared<Broken>());
        spec.transforms[0]->name = "Broken";
      };
      return share.fit(12, 1, 2).result();
    });
    EXPECT_EQ(two[0], two[1]);
    EXPECT_EQ(numbers(two[0]).at(0), std::string(options).size() > 15 ? 6 : 12) << two[0];
  }
}

TEST(Processes, StopTogetherWhenOneIsAsked) {
  for (const bool by_signal : {true, false}) {
    const std::vector<std::string> two = together([&](Processes& processes) {
      watch_signals();
      Share share(&processes, "max_epochs: 50");
      share.tiny.recorder->each_step = [&](training::Context& context) {
        if (processes.is_first() || context.state.step != 3) return;
        if (by_signal) ::raise(SIGTERM);
        if (!by_signal) context.stop = true;
      };
      share.fit(16, 2, 1);
      return fmt::format("{} {}", share.tiny.state().step, share.tiny.trainer->signal());
    });
    EXPECT_EQ(two[0], fmt::format("3 {}", by_signal ? SIGTERM : 0));
    EXPECT_EQ(two[1], two[0]);
  }
}

TEST(StopCondition, WhatOneProcessKnowsCountsForAll) {
  const std::vector<std::string> two = together([](Processes& processes) {
    watch_signals();
    const training::TrainerOptions options = test::trainer_options("{max_time: {hours: 1}}");
    const training::TrainState state;
    training::StopCondition by_callback(options, processes), by_time(options, processes),
        by_signal(options, processes);
    const bool is_first = processes.is_first();
    if (!is_first) by_callback.ask();
    if (!is_first) by_time.start_clock(3600);
    std::string told;
    for (training::StopCondition* stop : {&by_callback, &by_time}) {
      const bool is_early = stop->is_met(state);
      const bool anyone_saves = stop->agree(/*wants_to_save=*/is_first),
                 nobody_saves = !stop->agree();
      told +=
          fmt::format("{} {} {} {}, ", is_early, anyone_saves, nobody_saves, stop->is_met(state));
    }
    if (!is_first) ::raise(SIGTERM);
    by_signal.agree();
    return told + fmt::format("{} {}", by_signal.is_met(state), by_signal.signal());
  });
  EXPECT_EQ(two[0], fmt::format("false true true true, false true true true, true {}", SIGTERM));
  EXPECT_EQ(two[1], two[0]);
}

TEST(Processes, AnErrorOfOneIsToldByAll) {
  const std::vector<std::string> two = together([](Processes& processes) {
    Share share(&processes, "max_epochs: 50");
    share.tiny.recorder->each_step = [&](training::Context& context) {
      if (!processes.is_first() && context.state.step == 3) throw DataError("07.tif: damaged");
    };
    return share.fit(16, 2, 1).result();
  });
  EXPECT_EQ(two[0], "error 2: rank 1: 07.tif: damaged");
  EXPECT_EQ(two[1], "error 2: 07.tif: damaged");
}

TEST(Processes, NamesTheOneThatWasKilled) {
  const std::vector<std::string> two = together([](Processes& processes) {
    Share share(&processes, "max_epochs: 5000");
    share.tiny.recorder->each_step = [&](training::Context& context) {
      if (!processes.is_first() && context.state.step == 3) ::raise(SIGKILL);
    };
    return share.fit(16, 2, 1).result();
  });
  EXPECT_EQ(two[0].rfind("error 4: stopped answering: rank 1 (", 0), 0U) << two[0];
  EXPECT_NE(two[0].find("logs.rank1.log"), std::string::npos) << two[0];
}

/// A store whose owner ends as soon as it has sent its address and asks for the others'.
struct EndsWhenItAsks final : c10d::PrefixStore {
  using PrefixStore::PrefixStore;
  using PrefixStore::wait;
  struct End {};
  std::vector<uint8_t> get(const std::string&) override { throw End(); }
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {
    throw End();
  }
};

TEST(Processes, OneThatEndsBeforeItConnectsIsAboutOthers) {
  const pid_t child = ::fork();  // for its threads
  if (child == 0) {
    const auto shared = c10::make_intrusive<c10d::HashStore>();
    std::vector<int> sockets;
    try {
      training::make_gloo(
          c10::make_intrusive<EndsWhenItAsks>("", shared), {1, 2, 1, 2}, 20s, sockets);
      std::_Exit(1);
    } catch (const EndsWhenItAsks::End&) {
    }
    try {
      training::make_gloo(
          c10::make_intrusive<c10d::PrefixStore>("", shared), {0, 2, 0, 2}, 20s, sockets);
      std::_Exit(2);
    } catch (const c10::DistError&) {
      std::_Exit(0);
    } catch (...) {
      std::_Exit(3);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Processes, ASignalEndsTheWaitForOthers) {
  const pid_t child = ::fork();
  if (child == 0) {
    watch_signals();
    Processes processes(ProcessPlace{0, 2, 0, 2}, 60);
    ::raise(SIGTERM);
    std::_Exit(processes.join(c10::kCPU, "logs"));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

TEST(Processes, NamesTheOneThatIsBusyElsewhere) {
  const std::vector<std::string> two = together(
      [](Processes& processes) {
        Share share(&processes, "max_epochs: 5000");
        share.tiny.recorder->each_step = [&](training::Context& context) {
          if (!processes.is_first() && context.state.step == 3) ::sleep(5);
        };
        return share.fit(16, 2, 1).result();
      },
      1);
  EXPECT_EQ(two[0].rfind("error 4: waited 1.0s (trainer.process_timeout) for rank 1 (", 0), 0U)
      << two[0];
}

// What is stopped keeps its connections: nothing but its silence tells.
TEST(Processes, NameTheOneThatIsStopped) {
  for (const int64_t which : {1, 0}) {
    const std::vector<std::string> two = together(
        [&](Processes& processes) {
          Share share(&processes, "max_epochs: 5000");
          share.tiny.recorder->each_step = [&](training::Context& context) {
            if (processes.place().rank == which && context.state.step == 3) ::raise(SIGSTOP);
          };
          return share.fit(16, 2, 1).result();
        },
        3);
    const std::string& told = two[which == 0 ? 1 : 0];
    EXPECT_EQ(told.rfind(fmt::format("error 4: rank {} (", which), 0), 0U) << told;
    EXPECT_NE(told.find("gave no sign of life for 3.0s: stopped"), std::string::npos) << told;
  }
}

TEST(Processes, ASignalIsHeardWhileOneIsStopped) {
  const std::vector<std::string> two = together([](Processes& processes) {
    watch_signals();
    Share share(&processes, "max_epochs: 5000");
    share.tiny.recorder->each_step = [&](training::Context& context) {
      if (context.state.step == 3) ::raise(processes.is_first() ? SIGTERM : SIGSTOP);
    };
    return share.fit(16, 2, 1).result();
  });
  EXPECT_EQ(two[0].rfind("error 143: interrupted; rank 1 (", 0), 0U) << two[0];
}

TEST(Processes, AStrangerIsNotBelieved) {
  const std::vector<std::string> two = together([](Processes& processes) -> std::string {
    if (processes.is_first()) {
      const uint16_t port = processes.place().port;
      bool is_inside = false;  // no other interface: of this machine's TCP sockets that listen
      std::istringstream lines(read_file("/proc/self/net/tcp"));
      for (std::string line; std::getline(lines, line);)
        is_inside |= line.find(fmt::format("0100007F:{:04X} 00000000:0000 0A", port)) != line.npos;
      if (!is_inside) return "listens outside";
      c10d::TCPStoreOptions options;
      options.port = port;
      options.waitWorkers = false;
      c10d::TCPStore stranger("127.0.0.1", options);
      const std::vector<std::string> keys = stranger.listKeys();
      c10d::Store& there = stranger;
      there.set("cytra/0/end", std::string("2 a stranger's word"));
      there.set("cytra/0/signal", std::string("15"));
      if (keys.empty()) return "saw no key";
      stranger.set("cytra/0/signal", stranger.get("cytra/0/life/1"));  // sealed, for another key
    }
    for (int step = 0; step < 15; ++step) {
      processes.sum({at::zeros({1})});
      ::usleep(100000);
    }
    return fmt::format("{}", processes.others_signal());
  });
  EXPECT_EQ(two, (std::vector<std::string>{"0", "0"}));
}

TEST(Processes, AListenerThatIsSilentEndsTheWait) {
  const int silent = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent, 4), 0);
  ::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size);
  const pid_t child = ::fork();
  if (child == 0) {
    ProcessPlace place{1, 2, 1, 2};
    place.port = ntohs(address.sin_port);
    std::string said;
    {
      Processes processes(place, 1);
      try {
        processes.receive();
      } catch (const IoError& error) {
        said = error.what();
      }
    }
    std::_Exit(said.find("the program that listens there does not answer") != said.npos ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  ::close(silent);
}

// An image is read for ever, and a signal comes: the step that lacks it is not made.
TEST(Processes, ASignalIsHeardInAReadThatHangs) {
  struct Hangs final : data::Transform {
    void apply(data::Sample& sample, Rng&) const override {
      if (sample.id != "5") return;
      ::raise(SIGTERM);
      ::sleep(20);
    }
  };
  const std::string one = together(
      [](Processes&) {
        watch_signals();
        Share share(nullptr, "max_epochs: 2, accumulate_grad_batches: 2");
        share.edit = [](data::DataLoaderSpec& spec) {
          spec.shuffle = false;
          spec.options.num_workers = 1;
          spec.transforms.push_back(std::make_shared<Hangs>());
          spec.transforms.back()->name = "Hangs";
        };
        share.fit(12, 1, 0);
        const training::TrainState& state = share.tiny.state();
        return fmt::format("{} {} {}", state.step, state.batch, share.tiny.trainer->signal());
      },
      60,
      1)[0];
  EXPECT_EQ(one, fmt::format("2 4 {}", SIGTERM));
}

// The threads that could be started end with the constructor that fails.
TEST(Processes, ALoaderWithoutRoomForThreadsLeavesNone) {
  const std::string one = together(
      [](Processes&) {
        const auto threads = [] {
          return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
        };
        const auto before = threads();
        rlimit space{};
        std::istringstream statm(read_file("/proc/self/statm"));
        statm >> space.rlim_cur;  // and 8 stacks of 8 MB
        space.rlim_cur = space.rlim_cur * static_cast<rlim_t>(::getpagesize()) + (rlim_t{64} << 20);
        space.rlim_max = space.rlim_cur;
        ::setrlimit(RLIMIT_AS, &space);
        try {
          test::loader(4, 1, false, 500);
        } catch (const std::exception&) {
          return std::string(threads() == before ? "ended" : "left");
        }
        return std::string("all could be started");
      },
      60,
      1)[0];
  EXPECT_EQ(one, "ended");
}

TEST(Processes, ParametersWithoutAPartInTheLoss) {
  struct Half final : nn::Model {
    Half() : Model({}) {
      used = register_module("used", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 1, 1)));
      idle = register_module("idle", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 1, 1)));
    }
    at::Tensor forward(const at::Tensor& image) override { return used(image); }
    std::vector<int64_t> divisor() const override { return {1, 1}; }
    int64_t in_channels() const override { return 1; }
    int64_t spatial_dims() const override { return 2; }
    int64_t out_channels() const override { return 1; }
    torch::nn::Conv2d used{nullptr}, idle{nullptr};
  };
  const auto gradient = [](Processes& processes, bool finds_unused) {
    at::manual_seed(processes.place().rank);
    Half model;
    training::GradientAverage average(processes, model, finds_unused);
    average.before_forward();
    const at::Tensor loss =
        model.forward(at::full({1, 1, 2, 2}, static_cast<double>(processes.place().rank))).mean();
    average.before_backward(loss);
    loss.backward();
    average.after_backward();
    return fmt::format("{}", model.used->weight.grad().item<double>());
  };
  EXPECT_EQ(together([&](Processes& processes) { return gradient(processes, true); }),
            (std::vector<std::string>{"0.5", "0.5"}));
  for (const std::string& error :
       together([&](Processes& processes) { return gradient(processes, false); })) {
    EXPECT_EQ(error.rfind("error 2: ", 0), 0U) << error;
    for (const char* part : {"ddp_find_unused_parameters_true", "idle.weight"})
      EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace cytra
