#include "app/run/launch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include <ATen/Context.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/child_process.h"
#include "base/control_groups.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/open_temporaries.h"
#include "base/signals.h"
#include "base/strings.h"
#include "config/options.h"
#include "config/run_config.h"
#include "device/backend.h"

extern char** environ;

namespace cytra::app {
namespace {

using training::ProcessPlace;
using training::TrainerOptions;

std::string variable_text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// Reads a whole number from the environment. Throws: ConfigError.
int64_t number_of(const char* name, int64_t low, int64_t high) {
  const std::string text = variable_text(name);
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || number < low || number > high) {
    throw ConfigError("{}={} in the environment: expected a number from {} to {}",
                      name,
                      text.empty() ? "(not set)" : text,
                      low,
                      high);
  }
  return number;
}

int64_t number_or(const char* name, int64_t otherwise, int64_t low, int64_t high) {
  return variable_text(name).empty() ? otherwise : number_of(name, low, high);
}

constexpr int64_t kMost = 1 << 20, kPorts = 65535;
constexpr const char *kChild = "CYTRA_CHILD",  // set for processes that Children starts
    *kToken = "CYTRA_TOKEN";                   // set by Children, or by the launcher of all
                                               // processes

/// A token of 128 bits that nobody can guess.
std::string make_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

/// Keeps the connections inside this machine where all processes run on it.
void stay_inside(ProcessPlace& place) {
  if (place.local_size == place.size && !place.is_hosted) place.host = "127.0.0.1";
}

ProcessPlace by_torchrun(const TrainerOptions& options) {
  ProcessPlace place;
  place.size = number_of("WORLD_SIZE", 1, kMost);
  place.rank = number_of("RANK", 0, place.size - 1);
  place.local_size = number_or("LOCAL_WORLD_SIZE",
                               std::clamp<int64_t>(place.size / options.num_nodes, 1, place.size),
                               1,
                               place.size);
  place.local_rank =
      number_or("LOCAL_RANK", place.rank % place.local_size, 0, place.local_size - 1);
  if (place.size == 1) return place;
  place.host = variable_text("MASTER_ADDR");
  if (place.host.empty())
    throw ConfigError("MASTER_ADDR is not in the environment: expected the host of rank 0");
  place.port = static_cast<uint16_t>(number_of("MASTER_PORT", 1, kPorts));
  place.is_hosted = variable_text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!variable_text("TORCHELASTIC_RESTART_COUNT").empty())
    place.attempt = variable_text("TORCHELASTIC_RESTART_COUNT");
  place.is_child = variable_text(kChild) == "1";
  place.token = variable_text(kToken);
  if (place.token.empty()) place.token = variable_text("TORCHELASTIC_RUN_ID");
  stay_inside(place);
  return place;
}

ProcessPlace by_slurm(const TrainerOptions& options) {
  ProcessPlace place;
  place.size = number_of("SLURM_NTASKS", 1, kMost);
  place.rank = number_of("SLURM_PROCID", 0, place.size - 1);
  place.local_size = std::clamp<int64_t>(
      place.size / number_or("SLURM_STEP_NUM_NODES", options.num_nodes, 1, kMost), 1, place.size);
  place.local_rank = number_of("SLURM_LOCALID", 0, place.size - 1);
  place.host = variable_text("MASTER_ADDR");
  if (place.host.empty()) place.host = first_host(variable_text("SLURM_JOB_NODELIST"));
  if (place.host.empty())
    throw ConfigError("SLURM_JOB_NODELIST is not in the environment: expected the job's nodes");
  // Jobs on the same nodes, and steps of one job, need ports of their own.
  const int64_t id = number_or("SLURM_JOB_ID", 0, 0, INT64_MAX) +
                     1000 * (number_or("SLURM_STEP_ID", 0, 0, INT64_MAX) % 10);
  place.port = static_cast<uint16_t>(number_or("MASTER_PORT", 15000 + id % 10000, 1, kPorts));
  place.attempt = variable_text("SLURM_RESTART_COUNT") + "/" + variable_text("SLURM_STEP_ID");
  place.token = variable_text(kToken);
  stay_inside(place);
  return place;
}

/// Checks that 127.0.0.1 works, by which processes of one machine communicate. In a container
/// without that device they would wait for each other until trainer.process_timeout.
void expect_loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
            client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool is_there = ::bind(server, where, size) == 0 && ::listen(server, 1) == 0 &&
                  ::getsockname(server, where, &size) == 0 &&
                  (::connect(client, where, size) == 0 || errno == EINPROGRESS);
  std::string why = std::strerror(errno);
  if (is_there) {
    pollfd waiting{client, POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof error;
    constexpr int kWaitMs = 10000;
    is_there = ::poll(&waiting, 1, kWaitMs) == 1 &&
               ::getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
    why = error == 0 ? "no answer" : std::strerror(error);
  }
  ::close(server);
  ::close(client);
  if (is_there) return;
  throw IoError(
      "trainer.devices: processes of this machine can't reach each other by 127.0.0.1 ({}); start "
      "its loopback device (`ip link set lo up`), or use trainer.devices=1",
      why);
}

/// Whether srun has started this process as one of several. Shells and batch scripts have such
/// variables, too, but a process that they start stands alone.
bool is_slurm_task() {
  constexpr int64_t kSpecialSteps = 0xfffffff0;  // of batch scripts and interactive shells
  return !variable_text("SLURM_PROCID").empty() && !variable_text("SLURM_STEP_ID").empty() &&
         number_of("SLURM_STEP_ID", 0, INT64_MAX) < kSpecialSteps &&
         number_or("SLURM_NTASKS", 1, 1, kMost) > 1;
}

/// Sets the path of each node, by which read_options() finds the user's own keys.
void set_places(config::Node& node, const std::string& prefix = "") {
  for (auto& [name, child] : node.map) {
    child.path = prefix + name;
    set_places(child, child.path + ".");
  }
}

}  // namespace

ProcessPlace place_of(const TrainerOptions& options, c10::Device device) {
  constexpr int64_t kMostProcesses = 1024;  // of a machine
  if (options.devices.count > kMostProcesses) {
    throw ConfigError("trainer.devices={}: expected at most {} processes on a machine",
                      options.devices.count,
                      kMostProcesses);
  }
  const device::Backend& backend = device::backend_of(device);
  const int64_t gpus = backend.count();
  const bool is_torchrun = !variable_text("RANK").empty() || !variable_text("WORLD_SIZE").empty();
  ProcessPlace place;
  if (is_torchrun || is_slurm_task()) {
    place = is_torchrun ? by_torchrun(options) : by_slurm(options);
    const int64_t wanted = options.devices.count * options.num_nodes;
    if (options.devices.count > 0 && wanted != place.size) {
      throw ConfigError(
          "{}={} in the environment, but trainer.devices={} with trainer.num_nodes={} make {} "
          "processes; expected devices times num_nodes to be {} (or trainer.devices=auto)",
          is_torchrun ? "WORLD_SIZE" : "SLURM_NTASKS",
          place.size,
          options.devices.count,
          options.num_nodes,
          wanted,
          place.size);
    }
  } else {
    if (options.num_nodes > 1) {
      throw ConfigError(
          "trainer.num_nodes={}: expected this process to be started by torchrun or srun, once per "
          "device of every machine (docs/distributed.md)",
          options.num_nodes);
    }
    place.size = options.devices.count > 0 ? options.devices.count : std::max<int64_t>(1, gpus);
    place.local_size = place.size;
    place.token = make_token();
  }
  options.devices.expect_there(gpus);
  place.gpus = options.devices.chosen;
  if (gpus > 0) gpu_of(place, gpus);
  if (gpus > 0 && starts_others(place) && place.size > gpus) {
    throw ConfigError(
        "trainer.devices={}: this machine has {} GPUs (CUDA_VISIBLE_DEVICES)", place.size, gpus);
  }
  if (place.size > 1 && place.local_size == place.size && !place.is_hosted) expect_loopback();
  return place;
}

int64_t gpu_of(const ProcessPlace& place, int64_t gpus) {
  if (!place.gpus.empty()) return place.gpus.at(static_cast<std::size_t>(place.local_rank));
  if (gpus == 1) return 0;
  if (place.local_rank < gpus) return place.local_rank;
  throw ConfigError(
      "trainer.devices: process {} of this machine would use GPU {}, but it has {} GPUs",
      place.local_rank,
      place.local_rank,
      gpus);
}

c10::Device device_of(const ProcessPlace& place, c10::Device device) {
  const device::Backend& backend = device::backend_of(device);
  if (backend.count() == 0 || (place.size == 1 && place.gpus.empty())) return device;
  const c10::Device own(device.type(),
                        static_cast<c10::DeviceIndex>(gpu_of(place, backend.count())));
  backend.set_current(own);
  return own;
}

bool starts_others(const ProcessPlace& place) {
  return place.size > 1 && variable_text("RANK").empty() && !is_slurm_task();
}

std::string first_host(const std::string& nodes) {
  const std::size_t bracket = nodes.find('[');
  if (nodes.find(',') < bracket || bracket == std::string::npos)
    return nodes.substr(0, nodes.find(','));
  const std::size_t end = nodes.find_first_of("-,]", bracket), close = nodes.find(']', bracket);
  if (close == std::string::npos) return "";
  const std::string after = nodes.substr(close + 1);
  return nodes.substr(0, bracket) + nodes.substr(bracket + 1, end - bracket - 1) +
         after.substr(0, after.find(','));
}

int threads_of(const ProcessPlace& place) {
  const int64_t cores = available_processors();
  const int64_t share = std::max<int64_t>(1, cores / place.local_size);
  return static_cast<int>(number_or("SLURM_CPUS_PER_TASK", share, 1, kMost));
}

std::string text_of(const CommonPaths& common, const cli::Run& run) {
  config::Node node = config::Node::make_map();
  node.set("folder", config::Node::make_string(common.folder));
  node.set("checkpoint", config::Node::make_string(common.checkpoint));
  node.set("config",
           config::Node::make_string(
               config::to_yaml(config::keep_environment(run.config, run.composed))));
  return config::to_json(node);
}

CommonPaths take_common(const std::string& text, cli::Run& run) {
  const config::Node node = config::parse_yaml(text, "of rank 0");
  run.config = config::parse_yaml(node.get<std::string>("config"), "of rank 0");
  config::fill_in_environment(run.config);
  set_places(run.config);
  return {node.get<std::string>("folder"), node.get<std::string>("checkpoint")};
}

void Children::start(const ProcessPlace& place) {
  ChildOptions child;
  child.program = "/proc/self/exe";
  child.arguments = split(read_file("/proc/self/cmdline"), '\0');
  if (!child.arguments.empty() && child.arguments.back().empty()) child.arguments.pop_back();
  child.death_signal = SIGKILL;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &child.blocked);
  for (const int signal : kEndSignals) sigaddset(&child.blocked, signal);  // until watch_signals()
  for (int64_t rank = 1; rank < place.size; ++rank) {
    const std::map<std::string, std::string> own{{"RANK", std::to_string(rank)},
                                                 {"LOCAL_RANK", std::to_string(rank)},
                                                 {"WORLD_SIZE", std::to_string(place.size)},
                                                 {"LOCAL_WORLD_SIZE", std::to_string(place.size)},
                                                 {"MASTER_ADDR", place.host},
                                                 {"MASTER_PORT", std::to_string(place.port)},
                                                 {kToken, place.token},
                                                 {kChild, "1"}};
    child.environment.clear();
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (own.count(text.substr(0, text.find('='))) == 0) child.environment.push_back(text);
    }
    for (const auto& [name, value] : own) child.environment.push_back(name + "=" + value);
    const pid_t pid = start_child(child);
    if (pid < 0) throw_errno("can't start", fmt::format("rank {}", rank), errno);
    const std::lock_guard lock(mutex_);
    children_.push_back({rank, pid});
  }
}

std::string Children::lost() {
  const std::lock_guard lock(mutex_);
  for (Child& child : children_) {
    const std::optional<ChildEnd> end = child.pid == 0 ? std::nullopt : end_of(child.pid);
    if (!end) continue;
    child.pid = 0;
    if (lost_.empty() && end->exit_code != 0)
      lost_ = fmt::format("rank {} {}{}", child.rank, end->signal == 0 ? "" : "was ", end->text());
  }
  return lost_;
}

Children::~Children() {
  using namespace std::chrono_literals;
  const auto is_alive = [this] {
    lost();
    return std::ranges::any_of(children_, [](const Child& child) { return child.pid != 0; });
  };
  const auto wait = [&](std::chrono::milliseconds most) {
    for (auto waited = 0ms; waited < most && is_alive(); waited += 20ms)
      std::this_thread::sleep_for(20ms);
  };
  wait(3s);
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const Child& child : children_) {
      if (child.pid != 0) ::kill(child.pid, signal);
    }
    wait(2s);
  }
}

void OwnLog::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) {  // no shared file system
    log::warn("{}: {}; messages are written here instead", path, std::strerror(errno));
    return;
  }
  before_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(file, STDERR_FILENO);
  ::close(file);
}

void OwnLog::restore() {
  if (before_ < 0) return;
  ::dup2(before_, STDERR_FILENO);
  ::close(before_);
  before_ = -1;
}

int run_in_processes(const training::ProcessPlace& place,
                     c10::Device device,
                     double timeout_s,
                     const std::function<int(OwnProcess& self)>& work) {
  OwnLog own_log;
  Children children;
  training::Processes processes(
      place,
      timeout_s,
      {[&children] { return children.lost(); },
       [&](const std::string& message, int code) {  // of other processes, while this one does not
                                                    // respond
         if (processes.is_speaker()) own_log.restore();
         log::write(log::Level::error, message);
         remove_open_temporaries();
         std::_Exit(code);
       }});
  OwnProcess self{device, processes, children, own_log};
  int code = 0;
  try {
    processes.guard([&] { code = work(self); });
  } catch (...) {
    if (processes.is_speaker()) own_log.restore();
    throw;
  }
  return code;
}

}  // namespace cytra::app
