#pragma once
// Which request goes where, and who may ask.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/serve/models/image_request.h"
#include "app/serve/state.h"

namespace cytra::app {

using ServeArguments = std::vector<std::string>;  // of a route, in its order; {""}: it has none
/// Answers at once. Throws: HttpError.
using Tell =
    std::function<HttpResponse(const HttpExchange& exchange, const ServeArguments& arguments)>;
/// Does work that takes a share of the budget, in a thread of ServeState::pool, and answers then or
/// later. Throws: HttpError.
using Work = std::function<void(const std::shared_ptr<HttpExchange>& exchange,
                                const ServeArguments& arguments)>;
/// A route. `path`: "/v2/models/{model}/infer". Exactly one function is set.
struct Route {
  const char* method;
  std::string path;
  const char* summary;
  Tell tell;
  Work work;
  bool is_open = false;               // needs no token
  std::vector<Parameter> parameters;  // of the query, which /openapi.json tells
  bool takes_file = false;            // as the body
};

class Router final : public HttpHandler {
 public:
  explicit Router(ServeState& state);
  std::unique_ptr<RequestBudget::Share> admit(const HttpHead& head) override;
  void handle(std::shared_ptr<HttpExchange> exchange) override;
  void count(const HttpHead& head, int status, double seconds) override;

 private:
  const Route& find(const HttpHead& head, ServeArguments& arguments) const;
  bool is_token(const std::string& given) const;
  void check_client(const HttpHead& head, const Route& route) const;
  void expect_ready() const;
  void tell(const char* method, std::string path, const char* summary, Tell own);
  void tell_anyone(const char* method, std::string path, const char* summary, Tell own);
  Route& work(const char* method, std::string path, const char* summary, Work own);
  void work_on_file(std::string path,
                    const char* summary,
                    const std::vector<Parameter>& parameters,
                    const Work& own);
  void add_protocol_routes();
  void add_label_routes();
  void add_page_routes();
  HttpResponse metrics() const;
  HttpResponse openapi() const;
  ServeState& state_;
  std::vector<Route> routes_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answers_;  // by route and status; by mutex_
  pipelines::BatchHistogram seconds_;                       // of work; by mutex_
};

}  // namespace cytra::app
