#include "cli/mcp/calls.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "cli/mcp/report.h"

namespace cytra::cli::mcp {
namespace {

constexpr std::size_t kMostJobs = 16;      // at a time
constexpr std::size_t kMostMessages = 40;  // of a program, in an answer

Json text_content(const std::string& text) {
  return {{"type", "text"}, {"text", text}};
}

/// The last messages of a program, a line each.
std::vector<std::string> messages_of(const Job& job, bool errors_only) {
  std::vector<std::string> lines;
  for (const JobMessage& message : job.messages()) {
    const bool is_named = message.level == "warning" || (message.level == "error" && !errors_only);
    if (message.level == "error" || !errors_only)
      lines.push_back(is_named ? message.level + ": " + message.text : message.text);
  }
  const std::size_t left_out = lines.size() - std::min(lines.size(), kMostMessages);
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(left_out));
  return lines;
}

/// What a program that has ended gives to the client.
Json result_of(const std::string& tool, const Job& job) {
  const int code = job.end()->exit_code;
  const Json printed = Json::parse(job.output(), nullptr, false);
  const bool tells_problems = tool == "describe" && printed.is_object();  // of a data set
  if (code != 0 && !tells_problems) {
    std::vector<std::string> lines = messages_of(job, true);
    if (lines.empty()) lines = messages_of(job, false);
    Json result = tool_error(fmt::format("{}\n{}", fmt::join(lines, "\n"), job.end()->text()));
    result["structuredContent"] = {{"exit_code", code}};
    if (printed.is_object()) result["structuredContent"]["result"] = printed;
    return result;
  }
  if (!printed.is_object())  // a table of options
    return {{"content", Json::array({text_content(job.output())})}, {"isError", false}};
  Json result = tool_result(printed);
  const std::vector<std::string> lines = messages_of(job, false);
  if (!lines.empty())
    result["content"].push_back(text_content(fmt::format("{}", fmt::join(lines, "\n"))));
  return result;
}

std::string state_of(const Job& job) {
  if (!job.end()) return "running";
  if (job.was_stopped()) return "stopped";
  return job.end()->exit_code == 0 ? "done" : "failed";
}

}  // namespace

Json tool_error(const std::string& text) {
  return {{"content", Json::array({text_content(text)})}, {"isError", true}};
}

Json tool_result(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return {{"content", Json::array({text_content(text)})},
          {"structuredContent", value},
          {"isError", false}};
}

void Calls::start(const std::string& tool, const Json& arguments, const Caller& caller) {
  expect_arguments(*find_tool(tool), arguments);
  if (tool == "report") return answer_(caller, tool_result(report(arguments)));
  if (tool == "stop") return answer_(caller, tool_result(stop(arguments)));
  const auto working = static_cast<std::size_t>(
      std::ranges::count_if(calls_, [](const Call& call) { return !call.job.end(); }));
  if (working >= kMostJobs)
    throw ConfigError("{} programs are at work, which is the most", working);
  const JobCommand command = command_of(tool, arguments, borders_);
  make_folders(borders_.folder() + "/.cytra/tmp");
  Call& call = calls_.emplace_back(tool, command);
  if (arguments.value("background", false)) {
    call.name = fmt::format("{}-{}", tool, ++started_);
    return answer_(caller, tool_result({{"job", call.name}}));
  }
  call.caller = caller;
}

void Calls::cancel(const Json& id) {
  for (Call& call : calls_) {
    if (id.is_null() || call.caller.id != id) continue;
    call.caller = {};
    call.job.stop();
  }
}

bool Calls::add_to(std::vector<pollfd>& files) const {
  bool has_some = false;
  for (const Call& call : calls_) {
    if (call.job.end()) continue;
    call.job.add_to(files);
    has_some = true;
  }
  return has_some;
}

void Calls::look() {
  for (auto call = calls_.begin(); call != calls_.end();) {
    call->job.read();
    tell_progress(*call);
    if (!call->job.end()) {
      ++call;
      continue;
    }
    if (!call->caller.id.is_null()) answer_(call->caller, result_of(call->tool, call->job));
    call->caller = {};
    call = call->name.empty() ? calls_.erase(call) : std::next(call);
  }
}

void Calls::end() {
  for (Call& call : calls_) call.job.stop();
  for (Call& call : calls_) call.job.wait();
}

Calls::Call& Calls::find(const Json& arguments) {
  const auto name = arguments.at("job").get<std::string>();
  std::vector<std::string> names;
  for (Call& call : calls_) {
    if (call.name == name) return call;
    if (!call.name.empty()) names.push_back(call.name);
  }
  throw ConfigError("no job {} of this server.{}", name, suggestion(name, names));
}

Json Calls::report(const Json& arguments) {
  if (arguments.contains("job") == arguments.contains("folder"))
    throw ConfigError("report: expected either `folder` or `job`");
  if (arguments.contains("folder")) {
    const auto folder = arguments["folder"].get<std::string>();
    borders_.expect_readable(folder);
    return report_of_run(folder, (std::filesystem::path(borders_.folder()) / folder).string());
  }
  const Call& call = find(arguments);
  Json state{{"job", call.name}, {"state", state_of(call.job)}};
  if (const auto& progress = call.job.progress()) {
    state["progress"] = {{"label", progress->label}, {"done", progress->done}};
    if (progress->total >= 0) state["progress"]["total"] = progress->total;
    if (!progress->note.empty()) state["progress"]["note"] = progress->note;
  }
  state["messages"] = messages_of(call.job, false);
  if (!call.job.end()) return state;
  state["exit_code"] = call.job.end()->exit_code;
  if (Json printed = Json::parse(call.job.output(), nullptr, false); printed.is_object())
    state["result"] = std::move(printed);
  return state;
}

Json Calls::stop(const Json& arguments) {
  Call& call = find(arguments);
  call.job.stop();
  return {{"job", call.name}, {"state", call.job.end() ? state_of(call.job) : "stopping"}};
}

void Calls::tell_progress(Call& call) {
  const auto& progress = call.job.progress();
  if (call.caller.token.is_null() || !progress || call.job.end()) return;
  if (progress->label != call.part) {
    call.part = progress->label;
    call.before = call.shown;
  }
  const double now = call.before + static_cast<double>(progress->done);
  if (now <= call.shown) return;  // it must grow
  call.shown = now;
  Json params{{"progressToken", call.caller.token}, {"progress", now}};
  if (progress->total >= 0) params["total"] = call.before + static_cast<double>(progress->total);
  params["message"] = progress->label + (progress->note.empty() ? "" : ": " + progress->note);
  notify_(params);
}

}  // namespace cytra::cli::mcp
