// Part of app/serve/routes/router.h: the routes of the Open Inference Protocol, version 2.
#include "app/serve/http/http_server.h"
#include "app/serve/http/json_body.h"
#include "app/serve/routes/router.h"
#include "app/serve/tensors/tensor_request.h"
#include "base/strings.h"
#include "base/version.h"

namespace cytra::app {
namespace {

/// The body of a POST to register a region of shared memory. Throws: HttpError.
SharedRegions::Region region_of(const std::string& body) {
  const Json json = parse_object(body);
  return {json_member<std::string>(json, "key", "a text"),
          json_member_or<int64_t>(json, "offset", "a whole number", 0),
          json_member<int64_t>(json, "byte_size", "a whole number")};
}

void expect_parameters(const HttpExchange& exchange, const char* allowed) {
  const Json body = parse_object(exchange.body);
  for (const auto& [name, value] : parameters_of(body).items())
    if (name != allowed)
      throw HttpError(400, printable(name, 40) + ": a model is as the server's options say");
}

}  // namespace

void Router::add_protocol_routes() {
  const HttpResponse nothing{200, "{}"};
  tell("GET", "/v2", "The server and the protocol's extensions", [](const auto&, const auto&) {
    return http_json(
        {{"name", "cytra"},
         {"version", version()},
         {"extensions", {"binary_tensor_data", "system_shared_memory", "model_repository"}}});
  });
  tell_anyone("GET", "/v2/health/live", "Whether the program lives", [=](const auto&, const auto&) {
    return nothing;
  });
  tell_anyone(
      "GET", "/v2/health/ready", "Whether it takes images", [=, this](const auto&, const auto&) {
        expect_ready();
        return nothing;
      });
  const auto model = [this](const ServeArguments& arguments) {
    if (arguments.size() > 1 && arguments[1] != "1")
      throw HttpError(404, printable(arguments[1], 40) + ": no such version, expected 1");
    return state_.model(arguments[0]);
  };
  const Work infer = [=, this](const auto& exchange, const auto& arguments) {
    predict_tensors(*model(arguments), exchange, state_.regions);
  };
  for (const std::string of_version : {"", "/versions/{version}"}) {
    const std::string path = "/v2/models/{model}" + of_version;
    tell("GET", path, "The model's tensors", [=](const auto&, const auto& arguments) {
      return describe_tensors(*model(arguments));
    });
    tell("GET", path + "/ready", "Whether the model is there", [=](const auto&, const auto& own) {
      model(own);
      return nothing;
    });
    work("POST", path + "/infer", "Tensors come, tensors go", infer).parameters = {kRequestId};
  }
  tell("POST", "/v2/repository/index", "The models", [this](const auto&, const auto&) {
    Json list = Json::array();
    for (const Repository::ModelStatus& status : state_.models->index())
      list.push_back({{"name", status.name},
                      {"version", "1"},
                      {"state", status.is_loaded ? "READY" : "UNAVAILABLE"},
                      {"reason", status.reason}});
    return http_json(list);
  });
  work("POST",
       "/v2/repository/models/{model}/load",
       "Loads a model anew; the one before answers until it is ready",
       [=, this](const auto& exchange, const auto& arguments) {
         expect_parameters(*exchange, "");
         state_.models->load(arguments[0], [exchange, nothing](const std::string& error) {
           exchange->answer(error.empty() ? nothing : error_response(400, error));
         });
       });
  tell("POST",
       "/v2/repository/models/{model}/unload",
       "Takes a model out of service",
       [=, this](const auto& exchange, const auto& arguments) {
         expect_parameters(exchange, "unload_dependents");  // there are none
         state_.models->unload(arguments[0]);
         return nothing;
       });
  const Tell regions = [this](const auto&, const auto& arguments) {
    Json list = Json::array();
    for (const auto& [name, region] : state_.regions.list(arguments[0]))
      list.push_back({{"name", name},
                      {"key", region.key},
                      {"offset", region.offset},
                      {"byte_size", region.bytes}});
    return http_json(list);
  };
  tell("GET", "/v2/systemsharedmemory/status", "Registered regions of shared memory", regions);
  const std::string region = "/v2/systemsharedmemory/region/{region}";
  tell("GET", region + "/status", "A registered region", regions);
  tell("POST",
       region + "/register",
       "Registers a region of this machine",
       [=, this](const auto& exchange, const auto& arguments) {
         if (!is_loopback(state_.config.host))
           throw HttpError(400,
                           "shared memory: is for programs of this machine alone; the server "
                           "listens to others, too");
         state_.regions.add(arguments[0], region_of(exchange.body));
         return nothing;
       });
  const Tell remove = [=, this](const auto&, const auto& arguments) {
    state_.regions.remove(arguments[0]);
    return nothing;
  };
  tell("POST", region + "/unregister", "Forgets a region", remove);
  tell("POST", "/v2/systemsharedmemory/unregister", "Forgets all regions", remove);
}

}  // namespace cytra::app
