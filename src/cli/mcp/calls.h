#pragma once
// The tools' work that is going on: requests that wait for a program, and jobs in the background.
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <poll.h>

#include "cli/mcp/borders.h"
#include "cli/mcp/job.h"
#include "cli/mcp/tools.h"

namespace cytra::cli::mcp {

/// A request that waits for an answer.
struct Caller {
  Json id;
  Json token;  // of its progress; null: not asked for
  bool is_modern = false;
};

/// What a tool has found, as structured content and, for clients of before 2025-06-18, as text.
Json tool_result(const Json& value);
/// A mistake that the agent can correct.
Json tool_error(const std::string& text);

class Calls {
 public:
  using Answer = std::function<void(const Caller& caller, Json result)>;
  using Notify = std::function<void(const Json& params)>;  // of notifications/progress
  Calls(const Borders& borders, Answer answer, Notify notify)
      : borders_(borders), answer_(std::move(answer)), notify_(std::move(notify)) {}

  /// Starts a tool; the answer comes from here or from look(). Throws: ConfigError for arguments
  /// that the tool does not take, IoError.
  void start(const std::string& tool, const Json& arguments, const Caller& caller);
  /// Ends the work of a request, which gets no answer.
  void cancel(const Json& id);
  /// Adds what poll() has to wait for. Returns whether a program works.
  bool add_to(std::vector<pollfd>& files) const;
  /// Looks at every program: tells progress, answers where one has ended.
  void look();
  /// Ends all programs, and waits for that.
  void end();

 private:
  struct Call {
    Call(std::string tool_name, const JobCommand& command)
        : tool(std::move(tool_name)), job(command) {}
    std::string tool;
    Job job;
    Caller caller;                 // whose id is null where nobody waits
    std::string name;              // of a job in the background
    std::string part;              // of the work, whose progress counts from 0
    double before = 0, shown = 0;  // progress of earlier parts, and what was told last
  };
  Json report(const Json& arguments);
  Json stop(const Json& arguments);
  Call& find(const Json& arguments);
  void tell_progress(Call& call);
  const Borders& borders_;
  Answer answer_;
  Notify notify_;
  std::list<Call> calls_;
  int started_ = 0;
};

}  // namespace cytra::cli::mcp
