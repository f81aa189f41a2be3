#include "cli/mcp/server.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/version.h"
#include "cli/mcp/borders.h"
#include "cli/mcp/calls.h"
#include "cli/mcp/tools.h"
#include "config/json_limits.h"

namespace cytra::cli::mcp {
namespace {

constexpr const char* kModern = "2026-07-28";  // each request names its revision in _meta
constexpr const char* kWithHandshake[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

constexpr std::size_t kLongestLine = std::size_t{16} << 20;
constexpr int kTick_ms = 100;  // between two looks at programs that work
constexpr std::size_t kMostDepth = 100, kMostNames = 1000;  // of a request's lists and objects

// Source: JSON-RPC 2.0, and MCP's own.
constexpr int kNoJson = -32700, kNoRequest = -32600, kNoMethod = -32601, kBadParameters = -32602,
              kOtherVersion = -32022;

/// A request that can't be answered.
struct Refusal {
  int code;
  std::string message;
  Json data = {};
};

Json versions() {
  Json all{kModern};
  for (const char* version : kWithHandshake) all.push_back(version);
  return all;
}

Json server_info() {
  return {{"name", "cytra"}, {"title", "Cytra"}, {"version", version()}};
}

/// What the server says of itself, in both eras.
Json introduction(const Borders& borders) {
  return {
      {"capabilities", {{"tools", Json::object()}}},
      {"instructions",
       fmt::format("Cytra trains and runs deep-learning models on 2D and 3D microscopy and "
                   "medical images. Paths are below {} and relative to it. The usual order: "
                   "describe (path of the data), check or plan, train, report, predict. Options "
                   "are overrides such as trainer.max_epochs=10; describe (name) explains each.",
                   borders.folder())}};
}

/// The revision that a request names. Throws: Refusal.
bool is_modern_request(const Json& params) {
  const Json meta = params.value("_meta", Json::object());
  if (!meta.is_object() || !meta.contains(kVersionKey)) return false;
  if (meta[kVersionKey] != kModern) {
    throw Refusal{kOtherVersion,
                  "Unsupported protocol version",
                  {{"supported", versions()}, {"requested", meta[kVersionKey]}}};
  }
  if (!meta.contains(kCapabilitiesKey))
    throw Refusal{kBadParameters, fmt::format("_meta: no {}", kCapabilitiesKey)};
  return true;
}

class Server {
 public:
  explicit Server(Borders borders)
      : borders_(std::move(borders)),
        calls_(
            borders_,
            [this](const Caller& caller, Json result) { answer(caller, std::move(result)); },
            [this](const Json& params) {
              send({{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", params}});
            }) {}

  int run() {
    bool has_input = true;
    while (has_input && signal_received() == 0) {
      std::vector<pollfd> files{{STDIN_FILENO, POLLIN, 0}};
      const bool has_work = calls_.add_to(files);
      if (::poll(files.data(), files.size(), has_work ? kTick_ms : -1) < 0) continue;  // a signal
      if (files[0].revents != 0) has_input = read_input();
      calls_.look();
    }
    calls_.end();
    return signal_received() == 0 ? 0 : signal_exit_code(signal_received());
  }

 private:
  /// Returns whether there may be more.
  bool read_input() {
    char buffer[65536];
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    input_.append(buffer, static_cast<std::size_t>(count));
    if (count == 0 && !input_.empty()) input_ += '\n';  // the last line may have none
    std::size_t begin = 0;
    for (std::size_t at = 0; (at = input_.find('\n', begin)) != std::string::npos; begin = at + 1)
      take_line(input_.substr(begin, at - begin));
    input_.erase(0, begin);
    if (input_.size() <= kLongestLine) return count > 0;
    refuse(Json(), {kNoJson, "a message of more than 16 MiB"});
    return false;
  }

  void send(const Json& message) {
    const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }

  void refuse(const Json& id, const Refusal& refusal) {
    Json error{{"code", refusal.code}, {"message", refusal.message}};
    if (!refusal.data.is_null()) error["data"] = refusal.data;
    send({{"jsonrpc", "2.0"}, {"id", id}, {"error", error}});
  }

  void answer(const Caller& caller, Json result) {
    if (caller.is_modern) {
      result["resultType"] = "complete";
      result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info();
    }
    send({{"jsonrpc", "2.0"}, {"id", caller.id}, {"result", std::move(result)}});
  }

  void take_line(const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    if (const auto why = config::json_beyond(line, kMostDepth, kMostNames); !why.empty()) {
      const auto whole = nlohmann::json::parse(line, nullptr, false);  // in order of its names
      const auto id = whole.is_object() ? whole.value("id", nlohmann::json()) : nlohmann::json();
      return refuse(id.is_string() || id.is_number_integer() ? Json(id) : Json(),
                    {kNoRequest, fmt::format("the JSON {}", why)});
    }
    const Json message = Json::parse(line, nullptr, false);
    if (message.is_discarded()) return refuse(Json(), {kNoJson, "the line is not JSON"});
    const Json none = Json::object(), &object = message.is_object() ? message : none;
    const Json id = object.value("id", Json()), method = object.value("method", Json());
    Json params = object.value("params", Json());
    if (params.is_null()) params = none;
    const bool has_id = id.is_string() || id.is_number_integer();
    if (object.value("jsonrpc", Json()) != "2.0" || !method.is_string() || !params.is_object() ||
        has_id != object.contains("id")) {
      return refuse(
          has_id ? id : Json(),
          {kNoRequest, "expected a request of JSON-RPC 2.0: jsonrpc, id, method, params"});
    }
    if (!has_id) {
      if (method == "notifications/cancelled") calls_.cancel(params.value("requestId", Json()));
      return;  // others need nothing to be done
    }
    try {
      take_request(id, method, params);
    } catch (const Refusal& refusal) {
      refuse(id, refusal);
    }
  }

  void take_request(const Json& id, const std::string& method, const Json& params) {
    Caller caller{id, Json(), is_modern_request(params)};
    if (method == "initialize") {
      const Json asked = params.value("protocolVersion", Json());
      const bool is_known = std::ranges::find(kWithHandshake, asked) != std::end(kWithHandshake);
      has_handshake_ = true;
      Json result = introduction(borders_);
      result["protocolVersion"] = is_known ? asked : Json(kWithHandshake[0]);
      result["serverInfo"] = server_info();
      return answer({id, Json(), false}, std::move(result));
    }
    if (method == "ping" && !caller.is_modern) return answer(caller, Json::object());
    if (!caller.is_modern && !has_handshake_) {
      throw Refusal{kBadParameters,
                    fmt::format("expected {} in _meta ({}), or `initialize` first ({})",
                                kVersionKey,
                                kModern,
                                fmt::join(kWithHandshake, ", "))};
    }
    Json result = Json::object();
    if (caller.is_modern) {  // the server and its tools stay as they are while it runs
      result["ttlMs"] = 3'600'000;
      result["cacheScope"] = "public";
    }
    if (method == "tools/list") {
      result["tools"] = tools();
      answer(caller, std::move(result));
    } else if (method == "server/discover" && caller.is_modern) {
      result.update(introduction(borders_));
      result["supportedVersions"] = versions();
      answer(caller, std::move(result));
    } else if (method == "tools/call") {
      if (const Json meta = params.value("_meta", Json()); meta.is_object())
        caller.token = meta.value("progressToken", Json());
      call_tool(caller, params);
    } else {
      throw Refusal{kNoMethod, "no method " + method};
    }
  }

  void call_tool(const Caller& caller, const Json& params) {
    const Json name = params.value("name", Json()),
               arguments = params.value("arguments", Json::object());
    if (!name.is_string() || !arguments.is_object())
      throw Refusal{kBadParameters, "tools/call: expected a name, and arguments as an object"};
    if (find_tool(name) == nullptr) {
      std::vector<std::string> names;
      for (const Json& tool : tools()) names.push_back(tool.at("name"));
      throw Refusal{
          kBadParameters,
          fmt::format("Unknown tool: {}.{}", name.get<std::string>(), suggestion(name, names))};
    }
    try {
      calls_.start(name, arguments, caller);
    } catch (const std::exception& error) {
      answer(caller, tool_error(error.what()));
    }
  }

  const Borders borders_;
  Calls calls_;
  std::string input_;
  bool has_handshake_ = false;
};

}  // namespace

int serve(const std::string& folder, const std::vector<std::string>& readable) {
  watch_signals();
  std::signal(SIGPIPE, SIG_IGN);  // a client that is gone closes stdin, too
  Borders borders(folder, readable);
  std::filesystem::current_path(borders.folder());
  if (!borders.enforce())
    log::warn("this kernel has no Landlock: paths are checked by their names only");
  log::info("{} is open to an agent, on stdin and stdout", borders.folder());
  return Server(std::move(borders)).run();
}

}  // namespace cytra::cli::mcp
