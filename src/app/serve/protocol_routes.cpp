// Part of app/serve/router.h: the routes of the Open Inference Protocol, version 2.
#include "app/serve/http_server.h"
#include "app/serve/json_body.h"
#include "app/serve/router.h"
#include "app/serve/tensor_request.h"
#include "base/strings.h"
#include "base/version.h"

namespace cytra::app {
namespace {

/// The body of a POST to register a region of shared memory. Throws: HttpError.
SharedRegions::Region region_of(const std::string& body) {
  const Json json = parse_body(body);
  if (!json.is_object()) throw HttpError(400, "JSON: expected an object");
  return {json_member<std::string>(json, "key", "a text"),
          json_member_or<int64_t>(json, "offset", "a whole number", 0),
          json_member<int64_t>(json, "byte_size", "a whole number")};
}

}  // namespace

using config::Node;

void Router::add_protocol_routes() {
  const auto add = [this](const char* method,
                          const char* path,
                          const char* summary,
                          auto tell,
                          bool is_open = false) {
    routes_.push_back({method, path, summary, tell, {}, is_open});
  };
  const HttpResponse nothing{200, "{}"};
  add("GET", "/v2", "The server and the protocol's extensions", [](const auto&, const auto&) {
    Node node = Node::make_map();
    node.set("name", Node::make_string("cytra"));
    node.set("version", Node::make_string(version()));
    node.set("extensions",
             Node::make_list(std::vector<std::string>{
                 "binary_tensor_data", "system_shared_memory", "model_repository"}));
    return http_json(node);
  });
  add(
      "GET",
      "/v2/health/live",
      "Whether the program lives",
      [=](const auto&, const auto&) { return nothing; },
      true);
  add(
      "GET",
      "/v2/health/ready",
      "Whether it takes images",
      [=, this](const auto&, const auto&) {
        expect_ready();
        return nothing;
      },
      true);
  const auto model = [this](const ServeArguments& arguments) {
    if (arguments.size() > 1 && arguments[1] != "1")
      throw HttpError(404, printable(arguments[1], 40) + ": no such version, expected 1");
    return state_.model(arguments[0]);
  };
  const auto describe = [=](const auto&, const ServeArguments& arguments) {
    return describe_tensors(*model(arguments));
  };
  const auto is_ready = [=](const auto&, const ServeArguments& arguments) {
    model(arguments);
    return nothing;
  };
  const auto infer = [=, this](const std::shared_ptr<HttpExchange>& exchange,
                               const ServeArguments& arguments) {
    predict_tensors(*model(arguments), exchange, state_.regions);
  };
  add("GET", "/v2/models/{model}", "The model's tensors", describe);
  add("GET", "/v2/models/{model}/versions/{version}", "The model's tensors", describe);
  add("GET", "/v2/models/{model}/ready", "Whether the model is there", is_ready);
  add("GET", "/v2/models/{model}/versions/{version}/ready", "Whether the model is there", is_ready);
  routes_.push_back({"POST", "/v2/models/{model}/infer", "Tensors come, tensors go", {}, infer});
  routes_.push_back({"POST",
                     "/v2/models/{model}/versions/{version}/infer",
                     "Tensors come, tensors go",
                     {},
                     infer});
  add("POST", "/v2/repository/index", "The models", [this](const auto&, const auto&) {
    Node list = Node::make_list();
    for (const Repository::Entry& entry : state_.models->index()) {
      Node one = Node::make_map();
      one.set("name", Node::make_string(entry.name));
      one.set("version", Node::make_string("1"));
      one.set("state", Node::make_string(entry.is_loaded ? "READY" : "UNAVAILABLE"));
      one.set("reason", Node::make_string(entry.reason));
      list.list.push_back(one);
    }
    return http_json(list);
  });
  const auto expect_parameters = [](const HttpExchange& exchange, const char* allowed) {
    const Json body = exchange.body.empty() ? Json::object() : parse_body(exchange.body);
    if (!body.is_object()) throw HttpError(400, "the body: expected an object");
    for (const auto& [name, value] : parameters_of(body).items())
      if (name != allowed)
        throw HttpError(400, printable(name, 40) + ": a model is as the server's options say");
  };
  routes_.push_back(
      {"POST",
       "/v2/repository/models/{model}/load",
       "Loads a model anew; the one before answers until it is ready",
       {},
       [=, this](const std::shared_ptr<HttpExchange>& exchange, const ServeArguments& arguments) {
         expect_parameters(*exchange, "");
         state_.models->load(arguments[0], [exchange, nothing](const std::string& error) {
           exchange->answer(error.empty() ? nothing : error_response(400, error));
         });
       }});
  add("POST",
      "/v2/repository/models/{model}/unload",
      "Takes a model out of service",
      [=, this](const HttpExchange& exchange, const ServeArguments& arguments) {
        expect_parameters(exchange, "unload_dependents");  // there are none
        state_.models->unload(arguments[0]);
        return nothing;
      });
  const auto regions = [this](const std::string& name) {
    Node list = Node::make_list();
    for (const auto& [own, region] : state_.regions.list(name)) {
      Node one = Node::make_map();
      one.set("name", Node::make_string(own));
      one.set("key", Node::make_string(region.key));
      one.set("offset", Node::make_integer(region.offset));
      one.set("byte_size", Node::make_integer(region.bytes));
      list.list.push_back(one);
    }
    return http_json(list);
  };
  add("GET",
      "/v2/systemsharedmemory/status",
      "Registered regions of shared memory",
      [=](const auto&, const auto&) { return regions(""); });
  add("GET",
      "/v2/systemsharedmemory/region/{region}/status",
      "A registered region",
      [=](const auto&, const ServeArguments& arguments) { return regions(arguments[0]); });
  add("POST",
      "/v2/systemsharedmemory/region/{region}/register",
      "Registers a region of this machine",
      [=, this](const HttpExchange& exchange, const ServeArguments& arguments) {
        if (!is_loopback(state_.config.host))
          throw HttpError(400,
                          "shared memory: is for programs of this machine alone; the server "
                          "listens to others, too");
        state_.regions.add(arguments[0], region_of(exchange.body));
        return nothing;
      });
  const auto remove = [=, this](const auto&, const ServeArguments& arguments) {
    state_.regions.remove(arguments.empty() ? "" : arguments[0]);
    return nothing;
  };
  add("POST", "/v2/systemsharedmemory/region/{region}/unregister", "Forgets a region", remove);
  add("POST", "/v2/systemsharedmemory/unregister", "Forgets all regions", remove);
}

}  // namespace cytra::app
