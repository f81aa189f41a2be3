#include "app/run/launch.h"

#include <cmath>
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "config/options.h"

namespace cytra {
namespace {
using training::ProcessPlace;

/// Where a process with these variables and trainer options stands.
ProcessPlace place(const std::map<std::string, std::string>& variables,
                   const std::string& options = "{}") {
  for (const char* name : {"RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "TORCHELASTIC_USE_AGENT_STORE",
                           "TORCHELASTIC_RUN_ID",
                           "CYTRA_TOKEN",
                           "SLURM_PROCID",
                           "SLURM_NTASKS",
                           "SLURM_LOCALID",
                           "SLURM_STEP_ID",
                           "SLURM_JOB_NODELIST",
                           "SLURM_JOB_ID",
                           "SLURM_STEP_NUM_NODES",
                           "SLURM_CPUS_PER_TASK"})
    ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  return app::place_of(config::parse<training::TrainerOptions>(config::parse_yaml(options, "test")),
                       c10::kCPU);
}

std::string mistake(const std::map<std::string, std::string>& variables,
                    const std::string& options = "{}") {
  try {
    place(variables, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Launch, StartsAloneOrByItself) {
  EXPECT_EQ(place({}).size, 1);
  const ProcessPlace first = place({}, "{devices: 3}");
  EXPECT_EQ(first.size, 3);
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(first.port, 0);
  EXPECT_TRUE(app::starts_others(first));
  EXPECT_EQ(place({}, "{devices: auto}").size, 1);  // a CPU
  EXPECT_NE(mistake({}, "{devices: 2, num_nodes: 2}").find("torchrun"), std::string::npos);
}

TEST(Launch, ReadsTorchrun) {
  const std::map<std::string, std::string> variables{{"RANK", "5"},
                                                     {"WORLD_SIZE", "8"},
                                                     {"LOCAL_RANK", "1"},
                                                     {"LOCAL_WORLD_SIZE", "4"},
                                                     {"MASTER_ADDR", "node7"},
                                                     {"MASTER_PORT", "29500"},
                                                     {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  const ProcessPlace there = place(variables, "{devices: 4, num_nodes: 2}");
  EXPECT_EQ(there.rank, 5);
  EXPECT_EQ(there.size, 8);
  EXPECT_EQ(there.local_rank, 1);
  EXPECT_EQ(there.local_size, 4);
  EXPECT_EQ(there.host, "node7");
  EXPECT_EQ(there.port, 29500);
  EXPECT_TRUE(there.is_hosted);
  EXPECT_FALSE(app::starts_others(there));
  EXPECT_EQ(place(variables, "{devices: auto, num_nodes: 2}").size, 8);

  const std::string both = mistake(variables, "{devices: 2, num_nodes: 1}");
  for (const char* part : {"WORLD_SIZE=8", "trainer.devices=2", "trainer.num_nodes=1", "make 2"})
    EXPECT_NE(both.find(part), std::string::npos) << both;
  auto wrong = variables;
  wrong["RANK"] = "8";
  EXPECT_NE(mistake(wrong).find("RANK=8"), std::string::npos);
  wrong["RANK"] = "one";
  EXPECT_NE(mistake(wrong).find("RANK=one"), std::string::npos);
  wrong = variables;
  wrong.erase("MASTER_ADDR");
  EXPECT_NE(mistake(wrong).find("MASTER_ADDR"), std::string::npos);
  wrong = variables;
  wrong.erase("RANK");
  EXPECT_NE(mistake(wrong).find("RANK=(not set)"), std::string::npos);
}

TEST(Launch, ReadsSlurm) {
  std::map<std::string, std::string> variables{{"SLURM_PROCID", "3"},
                                               {"SLURM_NTASKS", "4"},
                                               {"SLURM_LOCALID", "1"},
                                               {"SLURM_STEP_ID", "0"},
                                               {"SLURM_STEP_NUM_NODES", "2"},
                                               {"SLURM_JOB_ID", "123456"},
                                               {"SLURM_CPUS_PER_TASK", "6"},
                                               {"SLURM_JOB_NODELIST", "gpu[03-07,11]"}};
  const ProcessPlace there = place(variables, "{devices: 2, num_nodes: 2}");
  EXPECT_EQ(there.rank, 3);
  EXPECT_EQ(there.size, 4);
  EXPECT_EQ(there.local_rank, 1);
  EXPECT_EQ(there.local_size, 2);
  EXPECT_EQ(there.host, "gpu03");
  EXPECT_EQ(there.port, 15000 + 3456);
  EXPECT_EQ(app::threads_of(there), 6);
  variables["SLURM_STEP_ID"] = "4294967291";  // a batch script: what it starts stands alone
  EXPECT_EQ(place(variables).size, 1);
}

TEST(Launch, OwnProcessesMeetInsideWithASecret) {
  const ProcessPlace one = place({}, "{devices: 2}"), another = place({}, "{devices: 2}");
  EXPECT_EQ(one.host, "127.0.0.1");
  EXPECT_EQ(one.token.size(), 32U);
  EXPECT_NE(one.token, another.token);
  std::map<std::string, std::string> variables{{"RANK", "1"},
                                               {"WORLD_SIZE", "2"},
                                               {"LOCAL_WORLD_SIZE", "2"},
                                               {"MASTER_ADDR", "node7"},
                                               {"MASTER_PORT", "29500"},
                                               {"TORCHELASTIC_RUN_ID", "of the launcher"}};
  EXPECT_EQ(place(variables, "{devices: 2}").host, "127.0.0.1");
  EXPECT_EQ(place(variables, "{devices: 2}").token, "of the launcher");
  variables["CYTRA_TOKEN"] = "of the user";
  EXPECT_EQ(place(variables, "{devices: 2}").token, "of the user");
  variables["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_EQ(place(variables, "{devices: 1, num_nodes: 2}").host, "node7");
}

TEST(Launch, AGpuForEachProcess) {
  ProcessPlace there;
  there.local_rank = 3;
  there.local_size = 4;
  EXPECT_EQ(app::gpu_of(there, 4), 3);
  EXPECT_EQ(app::gpu_of(there, 1), 0) << "Slurm shows each task its own";
  EXPECT_THROW(app::gpu_of(there, 2), ConfigError);
  there.gpus = {7, 5, 0, 2};
  EXPECT_EQ(app::gpu_of(there, 8), 2);
}

TEST(Launch, OthersTakeTheConfigurationAsItIs) {
  cli::Run first, other;
  first.config =
      config::parse_yaml("{a: {b: .inf, c: -.inf, d: .nan, e: 'inf'}, f: [1, 2.0]}", "test");
  const app::CommonPaths common =
      app::take_common(app::text_of({"folder", "last.ckpt"}, first), other);
  EXPECT_EQ(common.folder + common.checkpoint, "folderlast.ckpt");
  EXPECT_EQ(config::to_yaml(other.config), config::to_yaml(first.config));
  EXPECT_EQ(other.config.get<double>("a.c"), -INFINITY);
}

TEST(Launch, FirstHostOfSlurmsList) {
  EXPECT_EQ(app::first_host("cpu1"), "cpu1");
  EXPECT_EQ(app::first_host("cpu1,gpu[1-2]"), "cpu1");
  EXPECT_EQ(app::first_host("gpu[003-010,12],cpu1"), "gpu003");
  EXPECT_EQ(app::first_host("gpu[7,9].cluster"), "gpu7.cluster");
  EXPECT_EQ(app::first_host(""), "");
}

TEST(Launch, ProcessesOfAMachineAreBoundedAndReachEachOther) {
  EXPECT_NE(mistake({}, "{devices: 1000000000000}").find("expected at most 1024 processes"),
            std::string::npos);
  const pid_t child = ::fork();  // with a network of its own, whose loopback device is down
  if (child == 0) {
    if (::unshare(CLONE_NEWNET) != 0) ::_exit(77);
    try {
      place({}, "{devices: 2}");
    } catch (const IoError&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to a network of its own";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace cytra
