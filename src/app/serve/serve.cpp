// `serve`: trained models behind HTTP.
#include <chrono>
#include <filesystem>
#include <thread>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/serve/http/http_server.h"
#include "app/serve/routes/router.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/strings.h"
#include "device/device.h"
#include "io/formats.h"

namespace cytra::app {
namespace {
constexpr double kEndSeconds = 5;  // for closing, after the last answer
const bool serve_is_added = add_program<ServeConfig>("serve");

std::string token_of(const ServeConfig& config) {
  if (!config.token) {
    if (!is_loopback(config.host)) {
      throw ConfigError(
          "token: null, but host={} can be reached from other machines; expected auto or a token",
          config.host);
    }
    return "";
  }
  return *config.token == "auto" ? new_secret() : *config.token;
}

/// Whether the other end of a pipe is open; what comes through it is read and dropped.
bool is_open(int pipe) {
  pollfd state{pipe, POLLIN, 0};
  if (::poll(&state, 1, 0) <= 0) return true;
  char dropped[256];
  return ::read(pipe, dropped, sizeof dropped) > 0;
}

/// Lets the process have as many connections as it may.
void raise_open_files(int64_t connections) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto wanted = static_cast<rlim_t>(connections + 256);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Ends the process in some seconds, though threads may still be busy with what nobody waits for.
void end_within(double seconds, const RequestFolders& folders) {
  std::thread([seconds, folder = folders.folder()] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    log::warn("the server ends in the midst of its work");
    remove_all_quietly(folder);
    ::_exit(0);
  }).detach();
}

void load_models(const ServeConfig& config, ServeState& state) {
  const auto load = [&](const std::string& name, const std::vector<std::string>& paths) {
    const Spinner spinner("loading " + name);
    state.models->add(name, paths);
  };
  for (const auto& [name, path] : config.models.map)
    load(name,
         path.kind == config::Kind::list ? path.as<std::vector<std::string>>()
                                         : std::vector{path.as<std::string>()});
  if (config.checkpoint.ckpt_path.empty()) return;
  std::filesystem::path path =
      std::filesystem::absolute(config.checkpoint.ckpt_path.front()).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // a folder's name ends with a slash
  std::string name = path.stem().string();
  for (char& c : name)
    if (!is_letter(c) && !is_digit(c) && c != '_' && c != '-' && c != '.') c = '_';
  load(name, config.checkpoint.ckpt_path);
}

int serve(cli::Run run, const ServeConfig& config) {
  watch_signals();
  device::prepare(config.performance);
  raise_open_files(config.limits.connections);
  ServeState state(config, token_of(config));
  Router router(state);
  HttpLimits limits;
  limits.connections = config.limits.connections;
  limits.header_bytes = config.limits.header_kb << 10;
  limits.body_bytes = config.limits.body_mb * 1'000'000;
  limits.timeout_s = config.limits.timeout_s;
  limits.idle_s = config.limits.idle_s;
  HttpServer server(config.host, config.port, limits, router);
  state.connections = [&] { return server.connections(); };
  load_models(config, state);
  state.models->start(config.repository_poll_secs);
  server.start();

  cli::Results results(run.json);
  results.add("url", server.address());
  const bool is_made = config.token && *config.token == "auto";
  if (is_made || !config.token)
    results.add("token", is_made ? config::Node::make_string(state.token) : config::Node());
  if (server.port() > 0)
    results.add("page", server.address() + "/" + (is_made ? "#token=" + state.token : ""));
  for (const auto& [name, model] : state.models->loaded()) results.add_item("model", name);
  results.print();
  bool is_asked = true;
  while (signal_received() == 0 && is_asked) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (config.until_stdin) is_asked = is_open(STDIN_FILENO);
    state.sessions.forget_old();
  }
  state.is_draining = true;
  end_within(config.limits.drain_s + kEndSeconds, state.folders);
  std::thread training([&] {
    if (state.training) state.training->end();
  });
  log::info("the server ends; {} images are still answered", state.budget.requests());
  if (!server.drain(config.limits.drain_s))
    log::warn("limits.drain_s={}: {} images are left unanswered",
              config.limits.drain_s,
              state.budget.requests());
  server.stop();
  training.join();
  end_within(kEndSeconds, state.folders);
  state.pool.reset();  // it uses the router and the models
  state.training.reset();
  state.uncertainty.reset();  // it asks the models
  state.models.reset();
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_serve(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::serve);
}
