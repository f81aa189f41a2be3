#include "app/serve/routes/router.h"

#include <condition_variable>

#include <gtest/gtest.h>

namespace cytra::app {
namespace {

HttpHead head_of_request(const std::string& method, const std::string& path) {
  HttpHead head;
  head.method = method;
  head.path = path;
  head.headers["host"] = "localhost:8000";
  head.length = 0;
  return head;
}

struct WaitingExchange final : HttpExchange {
  void answer(HttpResponse given) override {
    const std::lock_guard lock(mutex);
    if (!response) response = std::move(given);
    changed.notify_all();
  }
  void on_end(std::function<void()>) override {}
  void expire_in(double) override {}
  HttpResponse wait() {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(60), [&] { return response.has_value(); }))
      throw std::runtime_error("no answer");
    return *response;
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<HttpResponse> response;
};

/// A router of a server without a model.
struct RouterOf {
  explicit RouterOf(const std::string& token = "", int64_t requests = 2)
      : config(config_of(requests)), state(config, token), router(state) {
    state.connections = [] { return 1; };
  }
  static ServeConfig config_of(int64_t requests) {
    ServeConfig config;
    config.limits.requests = requests;
    config.limits.requests_mb = 1;
    return config;
  }
  /// The answer to a request, as the server's thread gets it.
  HttpResponse ask(const HttpHead& head, const std::string& body = "") {
    try {
      router.admit(head);
    } catch (const HttpError& error) {
      return error_response(error.status, error.what(), error.allow);
    }
    const auto exchange = std::make_shared<WaitingExchange>();
    exchange->head = head;
    exchange->body = body;
    router.handle(exchange);
    return exchange->wait();
  }
  int status(const std::string& method, const std::string& path) {
    return ask(head_of_request(method, path)).status;
  }
  int status_with(const std::string& header, const std::string& value) {
    HttpHead head = head_of_request("GET", "/v2");
    head.headers[header] = value;
    return ask(head).status;
  }
  const ServeConfig config;
  ServeState state;
  Router router;
};

TEST(Router, FindsRoutesByPathAndMethod) {
  RouterOf server;
  EXPECT_EQ(server.ask(head_of_request("GET", "/healthz")).body, "{\"status\":\"ok\"}\n");
  for (const char* path : {"/", "/page.css", "/page.js", "/trainings", "/v2", "/openapi.json"})
    EXPECT_EQ(server.status("GET", path), 200) << path;
  for (const char* path :
       {"", "/v3", "/v2/", "//", "/v2/models//ready", "/predict/a/b", "/page.css/"})
    EXPECT_EQ(server.status("GET", path), 404) << path;
  const HttpResponse other = server.ask(head_of_request("PATCH", "/datastore/"));
  EXPECT_EQ(other.status, 405);
  EXPECT_NE(other.body.find("expected GET or PUT or DELETE"), std::string::npos) << other.body;
  EXPECT_EQ(other.headers, (decltype(other.headers){{"Allow", "GET, PUT, DELETE"}}));
  const HttpResponse unknown = server.ask(head_of_request("GET", "/a\x1b[2J"));
  EXPECT_EQ(unknown.body.find('\x1b'), std::string::npos) << "a terminal's words are escaped";
}

TEST(Router, GivesRoutesTheirArguments) {
  RouterOf server;
  for (const char* path : {"/v2/models/cells", "/v2/models/cells/versions/1"}) {
    const HttpResponse none = server.ask(head_of_request("GET", path));
    EXPECT_EQ(none.status, 404);
    EXPECT_NE(none.body.find("cells"), std::string::npos) << none.body;
  }
  const HttpResponse other = server.ask(head_of_request("GET", "/v2/models/cells/versions/2"));
  EXPECT_NE(other.body.find("2: no such version, expected 1"), std::string::npos) << other.body;
  EXPECT_EQ(server.ask(head_of_request("POST", "/predict/cells")).status, 404) << "by a thread";
}

TEST(Router, AsksForTheToken) {
  RouterOf server("secret");
  EXPECT_EQ(server.status("GET", "/v2"), 401);
  for (const char* given : {"",
                            "secret",
                            "Basic secret",
                            "Bearer",
                            "Bearer ",
                            "Bearer secre",
                            "Bearer secrets",
                            "Bearer secretsecret",
                            "Bearer SECRET"})
    EXPECT_EQ(server.status_with("authorization", given), 401) << given;
  for (const char* given : {"Bearer secret", "bearer secret"})
    EXPECT_EQ(server.status_with("authorization", given), 200) << given;
  for (const char* open : {"/", "/healthz", "/v2/health/live", "/auth/"})
    EXPECT_EQ(server.status("GET", open), 200) << open;
  const HttpHead login = head_of_request("POST", "/auth/token");
  EXPECT_EQ(server.ask(login, "username=a&password=secret").status, 200);
  EXPECT_EQ(server.ask(login, "username=a&password=").status, 401);
  EXPECT_NE(server.ask(head_of_request("GET", "/v2")).headers.at(0).second.find("Bearer"),
            std::string::npos);
}

TEST(Router, WithoutATokenIsForThisMachineAlone) {
  RouterOf server;
  for (const char* host : {"localhost", "127.0.0.1:8000", "127.8.0.1", "[::1]:8000", "[::1]"})
    EXPECT_EQ(server.status_with("host", host), 200) << host;
  for (const char* host : {"evil.example",
                           "localhost.evil.example:8000",
                           "127.evil.example",
                           "10.0.0.1",
                           "",
                           "128.0.0.1"})
    EXPECT_EQ(server.status_with("host", host), 421) << host;
  EXPECT_EQ(server.status_with("origin", "http://localhost:8000"), 200);
  for (const char* origin :
       {"http://evil.example", "null", "https://localhost:8000", "http://localhost:80"})
    EXPECT_EQ(server.status_with("origin", origin), 403) << origin;
}

TEST(Router, AdmitsWhatThereIsRoomFor) {
  RouterOf server;
  HttpHead told = head_of_request("POST", "/v2/repository/index");
  told.length = 64 << 10;
  EXPECT_EQ(server.router.admit(told), nullptr) << "it takes no place";
  ++*told.length;
  EXPECT_EQ(server.ask(told).status, 413);
  told.length.reset();
  told.headers["transfer-encoding"] = "chunked";
  EXPECT_EQ(server.ask(told).status, 413);

  HttpHead work = head_of_request("POST", "/predict");
  work.length = 600'000;
  auto first = server.router.admit(work);
  EXPECT_EQ(server.state.budget.bytes(), 600'000);
  EXPECT_EQ(server.ask(work).status, 503) << "of 1 MB";
  work.length = 0;
  const auto second = server.router.admit(work);
  EXPECT_EQ(server.ask(work).status, 503) << "of 2 requests";
  first = nullptr;
  EXPECT_NE(server.router.admit(work), nullptr);
  server.state.is_draining = true;
  EXPECT_EQ(server.ask(work).status, 503);
  EXPECT_EQ(server.status("GET", "/ready"), 503);
  EXPECT_EQ(server.status("GET", "/healthz"), 200);
}

TEST(Router, CountsAnswersByRoute) {
  RouterOf server;
  server.router.count(head_of_request("GET", "/v2/models/a"), 200, 1);
  server.router.count(head_of_request("GET", "/v2/models/b"), 200, 1);
  server.router.count(head_of_request("GET", "/made/up/by/a/client"), 404, 1);
  server.router.count(head_of_request("POST", "/predict"), 200, 2);
  const std::string text = server.ask(head_of_request("GET", "/metrics")).body;
  for (const char* line : {"{route=\"/v2/models/{model}\",status=\"200\"} 2",
                           "{route=\"other\",status=\"404\"} 1",
                           "cytra_serve_request_seconds_count 1",
                           "cytra_serve_request_seconds_sum 2"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("made"), std::string::npos) << "no client makes routes";
}

TEST(Router, SharedMemoryIsForThisMachineAlone) {
  const auto status = [](const std::string& host) {
    ServeConfig config = RouterOf::config_of(2);
    config.host = host;
    ServeState state(config, "secret");
    Router router(state);
    const auto exchange = std::make_shared<WaitingExchange>();
    exchange->head = head_of_request("POST", "/v2/systemsharedmemory/region/a/register");
    exchange->body = R"({"key": "/cytra-none", "byte_size": 1})";
    router.handle(exchange);
    return exchange->wait().body;
  };
  EXPECT_NE(status("0.0.0.0").find("programs of this machine alone"), std::string::npos);
  EXPECT_NE(status("127.0.0.1").find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace cytra::app
