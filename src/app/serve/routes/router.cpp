#include "app/serve/routes/router.h"

#include <cytra_pages.h>

#include "app/serve/http/http_server.h"
#include "app/serve/page/preview.h"
#include "app/serve/page/trainings.h"
#include "base/error.h"
#include "base/strings.h"

namespace cytra::app {
namespace {

/// Whether a path is of a route; `arguments` gets what stands for its {names}.
bool is_of_route(const std::string& path, const std::string& route, ServeArguments& arguments) {
  const std::vector<std::string> parts = split(path, '/'), expected = split(route, '/');
  if (parts.size() != expected.size()) return false;
  ServeArguments found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_name = expected[i].starts_with("{");
    if (is_name && !parts[i].empty()) {
      found.push_back(parts[i]);
    } else if (parts[i] != expected[i]) {
      return false;
    }
  }
  if (found.empty()) found.emplace_back();
  arguments = std::move(found);
  return true;
}

}  // namespace

void Router::tell(const char* method, std::string path, const char* summary, Tell own) {
  routes_.push_back({method, std::move(path), summary, std::move(own), {}});
}

void Router::tell_anyone(const char* method, std::string path, const char* summary, Tell own) {
  tell(method, std::move(path), summary, std::move(own));
  routes_.back().is_open = true;
}

Route& Router::work(const char* method, std::string path, const char* summary, Work own) {
  return routes_.emplace_back(Route{method, std::move(path), summary, {}, std::move(own)});
}

void Router::work_on_file(std::string path,
                          const char* summary,
                          const std::vector<Parameter>& parameters,
                          const Work& own) {
  Route& route = work("POST", std::move(path), summary, own);
  route.parameters = parameters;
  route.takes_file = true;
}

Router::Router(ServeState& state) : state_(state) {
  const Work predict = [=, this](const auto& exchange, const auto& names) {
    predict_image(*state_.model(names[0]), exchange, state_.folders);
  };
  const Work preview = [=, this](const auto& exchange, const auto& names) {
    preview_image(*state_.model(names[0]), exchange, state_.folders, state_.stacks);
  };
  tell_anyone("GET", "/healthz", "Whether the program lives", [](const auto&, const auto&) {
    return http_json({{"status", "ok"}});
  });
  tell_anyone("GET",
              "/ready",
              "Whether it takes images (503 while it ends, or has no place for their files)",
              [this](const auto&, const auto&) {
                expect_ready();
                return http_json({{"status", "ready"}});
              });
  tell("GET", "/metrics", "Figures for Prometheus", [this](const auto&, const auto&) {
    return metrics();
  });
  tell("GET", "/openapi.json", "This description", [this](const auto&, const auto&) {
    return openapi();
  });
  tell("GET",
       "/progress/{request_id}",
       "How far a request under way is: windows that are done, of all (null: not known yet)",
       [this](const auto&, const ServeArguments& arguments) {
         const auto [done, total] = state_.progress.find(arguments[0]);
         return http_json({{"done", done}, {"total", total > 0 ? Json(total) : Json()}});
       });
  work_on_file("/predict",
               "An image comes, its result goes; of a server with one model",
               predict_parameters(),
               predict);
  work_on_file(
      "/predict/{model}", "An image comes, its result goes", predict_parameters(), predict);
  work_on_file("/preview",
               "An image comes, pictures of it and its result go; of a server with one model",
               preview_parameters(),
               preview);
  work_on_file("/preview/{model}",
               "An image comes, pictures of it and its result go",
               preview_parameters(),
               preview);
  add_page_routes();
  add_protocol_routes();
  add_label_routes();
}

void Router::add_page_routes() {
  const auto add = [this](const char* path, const char* summary, const HttpResponse& part) {
    tell_anyone("GET", path, summary, [part](const auto&, const auto&) { return part; });
  };
  const auto script = [](const char* own) {
    return page_part(std::string(pages::common_js) + own, "text/javascript");
  };
  add("/", "A page to try the models", html_response(pages::page_html));
  add("/page.css",
      "Style of the pages",
      page_part(std::string(pages::common_css) + pages::page_css, "text/css"));
  add("/page.js", "Script of the page", script(pages::page_js));
  add("/trainings",
      "A page of trainings and their reports",
      html_response(pages::trainings_html, /*has_styles=*/true));
  add("/trainings.js", "Its script", script(pages::trainings_js));
  const auto folder = [this] {
    if (state_.trainings.empty())
      throw HttpError(404, "no trainings; expected the server's option trainings=FOLDER");
    return state_.trainings;
  };
  work("GET",
       "/trainings/list",
       "The trainings below the server's folder of them",
       [=](const auto& exchange, const auto&) { exchange->answer(list_trainings(folder())); });
  work("GET",
       "/trainings/report",
       "The report of the training `run`",
       [=](const auto& exchange, const auto&) {
         exchange->answer(training_report(folder(), exchange->head.parameter("run")));
       });
}

const Route& Router::find(const HttpHead& head, ServeArguments& arguments) const {
  std::vector<std::string> methods;
  for (const Route& route : routes_) {
    if (!is_of_route(head.path, route.path, arguments)) continue;
    if (head.method == route.method) return route;
    methods.emplace_back(route.method);
  }
  if (!methods.empty()) {
    HttpError error(
        405, "{} {}: expected {}", printable(head.method, 20), head.path, join(methods, " or "));
    error.allow = join(methods, ", ");
    throw error;
  }
  throw HttpError(
      404, printable(head.path) + ": there is nothing; GET /openapi.json says what there is");
}

/// Compares in a time that does not depend on where they differ.
bool Router::is_token(const std::string& given) const {
  const std::string& token = state_.token;
  unsigned difference = given.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size() && !token.empty(); ++i)
    difference |= static_cast<unsigned>(given[i] ^ token[i % token.size()]);
  return difference == 0;
}

void Router::check_client(const HttpHead& head, const Route& route) const {
  if (state_.token.empty()) {
    // A page in a browser may send what it likes to a name that it makes stand for this machine.
    std::string host = head.header("host");
    if (const std::size_t port = host.rfind(':');
        port != std::string::npos && host.find(']', port) == std::string::npos)
      host.resize(port);
    const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
    if (host != "localhost" && host != "[::1]" && host != state_.config.host &&
        !(is_number && host.starts_with("127.")) && !state_.config.host.starts_with("unix:"))
      throw HttpError(421, printable(host) + ": expected localhost as Host");
    if (const std::string origin = head.header("origin");
        !origin.empty() && origin != "http://" + head.header("host"))
      throw HttpError(403, printable(origin) + ": pages of other origins may not ask");
    return;
  }
  if (route.is_open) return;
  const std::string given = head.header("authorization"), begin = "bearer ";
  if (given.empty())
    throw HttpError(401, "no token; expected the header `Authorization: Bearer TOKEN`");
  if (!in_small_letters(given).starts_with(begin) || !is_token(given.substr(begin.size())))
    throw HttpError(401, "the token is another one than the server's");
}

std::unique_ptr<RequestBudget::Share> Router::admit(const HttpHead& head) {
  ServeArguments arguments;
  const Route& route = find(head, arguments);
  check_client(head, route);
  if (!route.work) {
    constexpr int64_t kMostTold = 64 << 10;  // bytes: names and settings, which nothing counts
    if (head.length.value_or(0) > kMostTold || !head.header("transfer-encoding").empty()) {
      throw HttpError(413,
                      "{}: expected a body of {} bytes at most, and its Content-Length",
                      head.path,
                      kMostTold);
    }
    return nullptr;
  }
  if (state_.is_draining) throw HttpError(503, "the server ends, and takes no more");
  std::unique_ptr<RequestBudget::Share> share = state_.budget.take(head.length.value_or(0));
  if (!share)
    throw HttpError(503, "the server is full (limits.requests, limits.requests_mb): try it later");
  return share;
}

void Router::handle(std::shared_ptr<HttpExchange> exchange) {
  ServeArguments arguments;
  const Route& route = find(exchange->head, arguments);
  const auto answer = [exchange](const auto& work) {
    try {
      work();
    } catch (const HttpError& error) {
      exchange->answer(error_response(error.status, error.what(), error.allow));
    } catch (const std::exception& error) {
      exchange->answer(error_response(exit_code(error) == 2 ? 422 : 500, error.what()));
    }
  };
  if (route.tell) return answer([&] { exchange->answer(route.tell(*exchange, arguments)); });
  answer([&] {
    const auto& query = exchange->head.query;
    if (const auto id = query.find("request_id"); id != query.end())
      exchange->progress = state_.progress.add(id->second);
    const auto is_over = std::make_shared<std::atomic<bool>>(false);
    exchange->on_end([is_over] { *is_over = true; });
    state_.pool->post([=, &route] {
      if (!*is_over) answer([&] { route.work(exchange, arguments); });
    });
  });
}

void Router::expect_ready() const {
  if (state_.is_draining) throw HttpError(503, "the server ends");
  try {
    state_.folders.take();
  } catch (const std::exception& error) {
    throw HttpError(503, error.what());
  }
}

void Router::count(const HttpHead& head, int status, double seconds) {
  std::string path = "other";
  bool is_work = false;
  ServeArguments arguments;
  for (const Route& route : routes_) {
    if (head.method != route.method || !is_of_route(head.path, route.path, arguments)) continue;
    path = route.path;
    is_work = route.work != nullptr;
  }
  const std::lock_guard lock(mutex_);
  ++answers_[{path, status}];
  if (is_work && status == 200) seconds_.add(seconds);
}

}  // namespace cytra::app
