#pragma once
// HTTP as the server's routes see it, without a network.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

namespace cytra::app {

using Json = nlohmann::ordered_json;

/// The head of a request. Names of headers are in small letters.
struct HttpHead {
  std::string method;                        // "POST"
  std::string path;                          // decoded: "/predict/cells"
  std::map<std::string, std::string> query;  // decoded
  std::map<std::string, std::string> headers;
  std::optional<int64_t> length;  // of the body; none: it comes in chunks
  /// A header's value; "" where there is none.
  std::string header(const std::string& name) const;
  /// A parameter of the query; `fallback` where there is none.
  std::string parameter(const std::string& name, const std::string& fallback = "") const;
};

struct HttpResponse {
  int status = 200;
  std::string body, type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

/// An answer that is an error: {"error": "..."} with a status of 400 or more.
struct HttpError : std::runtime_error {
  HttpError(int code, const std::string& what) : std::runtime_error(what), status(code) {}
  template <class First, class... Rest>
  HttpError(int code, fmt::format_string<First, Rest...> what, First&& first, Rest&&... rest)
      : HttpError(code,
                  fmt::format(what, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
  int status;
  std::string allow = {};  // of 405: the methods that there are
};
/// The value of a name in a form: "a=1&b=2". "" where there is none. Throws: as url_decoded().
std::string form_value(const std::string& form, const std::string& name);

/// Decodes %XX (and, in a query, + as a space). Throws: HttpError (400) for what is no such code,
/// or stands for NUL.
std::string url_decoded(const std::string& text, bool is_query);

/// Answers with JSON, in which bytes that are no UTF-8 are replaced.
HttpResponse http_json(const Json& body, int status = 200);
/// {"error": "..."}; with Retry-After where the server is full (503), and with what else HTTP asks
/// for (401, 405).
HttpResponse error_response(int status, const std::string& what, const std::string& allow = "");

/// What a page of a browser consists of; `type`: "text/css". Pages hold no secret, so anyone may
/// have them; what they ask the server for needs the token.
HttpResponse page_part(std::string text, const std::string& type);
/// A page that may run and load nothing but what this server has; `has_styles`: it may hold styles
/// of its own, as reports do.
HttpResponse html_response(std::string body, bool has_styles = false);

/// Makes a secret of 128 bits. Throws: IoError.
std::string new_secret();

class RequestProgress;

/// A request that waits for its answer.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  HttpHead head;
  std::string body;
  std::shared_ptr<RequestProgress> progress;  // null: its client does not ask how far it is
  /// Answers; the first answer counts. Thread: any.
  virtual void answer(HttpResponse response) = 0;
  /// Sets what is called when nobody waits for the answer any more: the client has gone, or the
  /// time is over. Called once at most, by the server's thread; at once where that is so already.
  virtual void on_end(std::function<void()> cancel) = 0;
  /// Sets the seconds from now after which the answer is 504.
  virtual void expire_in(double seconds) = 0;
};

/// How many requests may be answered at a time, and how many bytes their bodies, results and
/// answers may take. Thread: any.
class RequestBudget {
  struct State;

 public:
  RequestBudget(int64_t requests, int64_t bytes);
  /// A share, held until the object is destroyed.
  class Share {
   public:
    explicit Share(std::shared_ptr<State> state) : state_(std::move(state)) {}
    ~Share() { resize(0, 0); }
    Share& operator=(Share&&) = delete;
    /// Takes further bytes. False: they are too many.
    [[nodiscard]] bool grow(int64_t bytes) { return resize(requests_, bytes_ + bytes); }
    /// Stands for an answer of so many bytes from now on, in place of the request. False: they
    /// are too many.
    [[nodiscard]] bool hold_answer(int64_t bytes) { return resize(0, bytes); }

   private:
    friend class RequestBudget;
    bool resize(int64_t requests, int64_t bytes);
    const std::shared_ptr<State> state_;
    int64_t requests_ = 0, bytes_ = 0;
  };
  /// Null: it is too much. `requests`: 0 for further bytes of one that has its share.
  [[nodiscard]] std::unique_ptr<Share> take(int64_t bytes, int64_t requests = 1) const;
  int64_t requests() const;
  int64_t bytes() const;
  int64_t most_bytes() const;

 private:
  std::shared_ptr<State> state_;
};

/// What a server does with requests. Called by the server's thread, which must not wait: the work
/// belongs into others.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// Takes or refuses a request by its head, before its body is read. Returns the share that it
  /// holds, or null where it needs none. Throws: HttpError.
  virtual std::unique_ptr<RequestBudget::Share> admit(const HttpHead& head) = 0;
  /// Answers a request, now or later.
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
  /// Counts an answer.
  virtual void count(const HttpHead& head, int status, double seconds) = 0;
};

}  // namespace cytra::app
