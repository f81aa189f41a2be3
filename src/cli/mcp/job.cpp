#include "cli/mcp/job.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"

namespace cytra::cli::mcp {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = std::size_t{64} << 20;  // bytes of stdout that are kept
constexpr std::size_t kKeptMessages = 1000;                 // the newest
constexpr auto kPatience = std::chrono::seconds(30);

/// Appends what is in the pipe, without waiting for more; `text` keeps kMostOutput bytes. Closes a
/// pipe at its end.
void drain(int& file, std::string& text) {
  char buffer[65536];
  while (file >= 0) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) {
      ::close(file);
      file = -1;
      return;
    }
    if (text.size() < kMostOutput) text.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace

Job::Job(const JobCommand& command) {
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  const bool has_pipes = ::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(err, O_CLOEXEC) == 0;
  ChildOptions options;
  options.program = command.program;
  options.arguments = command.arguments;
  options.environment = command.environment;
  options.out = out[1];
  options.err = err[1];
  options.has_own_group = true;
  ::sigemptyset(&options.blocked);
  if (has_pipes) child_ = start_child(options);
  const int error = errno;
  for (const int end : {out[1], err[1]})
    if (end >= 0) ::close(end);
  out_ = out[0];
  err_ = err[0];
  for (const int end : {out_, err_})
    if (end >= 0) ::fcntl(end, F_SETFL, O_NONBLOCK);
  if (child_ > 0) return;
  close_files();
  throw IoError("{}: can't be started: {}", command.program, std::strerror(error));
}

Job::~Job() {
  if (!end_) {
    ::kill(-child_, SIGKILL);
    while (!end_of(child_)) ::usleep(1000);
  }
  close_files();
}

void Job::close_files() {
  for (const int file : {out_, err_})
    if (file >= 0) ::close(file);
}

void Job::add_to(std::vector<pollfd>& files) const {
  for (const int file : {out_, err_}) files.push_back({file, POLLIN, 0});  // -1: poll() skips it
}

void Job::read() {
  if (end_) return;
  if (stopped_ && Clock::now() - *stopped_ > kPatience) ::kill(-child_, SIGKILL);
  const std::optional<ChildEnd> end = end_of(child_);  // before what it wrote last is read
  drain(out_, output_);
  drain(err_, line_);
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = line_.find('\n', begin)) != std::string::npos; begin = at + 1)
    take_line(line_.substr(begin, at - begin));
  line_.erase(0, begin);
  if (!end) return;
  if (!line_.empty()) take_line(line_);
  end_ = end;
}

void Job::wait() {
  for (read(); !end_; read()) {
    std::vector<pollfd> files;
    add_to(files);
    ::poll(files.data(), files.size(), 20);
  }
}

void Job::stop() {
  if (end_ || stopped_) return;
  stopped_ = Clock::now();
  ::kill(-child_, SIGTERM);
}

void Job::take_line(const std::string& line) {
  const auto event = nlohmann::json::parse(line, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = event.find(key);
    return found != event.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const auto number = [&](const char* key) {
    const auto found = event.find(key);
    return found != event.end() && found->is_number() ? found->get<int64_t>() : -1;
  };
  const std::string kind = event.is_object() ? text("event") : "";
  if (kind == "progress") {
    if (!event.contains("is_part"))
      progress_ = JobProgress{text("label"), text("note"), number("done"), number("total")};
    return;
  }
  if (line.empty() || kind == "epoch") return;
  messages_.push_back(kind == "message" ? JobMessage{text("level"), text("text")}
                                        : JobMessage{"", line});
  if (messages_.size() > kKeptMessages) messages_.erase(messages_.begin());
}

}  // namespace cytra::cli::mcp
