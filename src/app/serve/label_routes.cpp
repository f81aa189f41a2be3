// Part of app/serve/router.h: the routes of MONAI Label.
#include "app/serve/http_server.h"
#include "app/serve/router.h"
#include "base/strings.h"

namespace cytra::app {

using config::Node;

void Router::add_label_routes() {
  const auto add = [&](const char* method, const char* path, const char* summary, auto work) {
    routes_.push_back({method, path, summary, {}, work});
  };
  add("GET",
      "/info/",
      "MONAI Label: models, strategies, images",
      [this](const auto& exchange, const auto&) { exchange->answer(label_info(state_)); });
  add("POST",
      "/infer/{model}",
      "MONAI Label: an image's labels",
      [this](const auto& exchange, const ServeArguments& arguments) {
        label_infer(state_, *state_.model(arguments[0]), exchange);
      });
  const auto datastore = [this](const auto& exchange, const auto&) {
    exchange->answer(label_datastore(state_, *exchange));
  };
  for (const char* method : {"GET", "PUT", "DELETE"})
    add(method, "/datastore/", "MONAI Label: the images and labels; adds, removes one", datastore);
  add("GET", "/datastore/image", "MONAI Label: an image's file", datastore);
  for (const char* method : {"GET", "PUT"})
    add(method, "/datastore/label", "MONAI Label: a label's file; saves one", datastore);
  const auto session = [this](const auto& exchange, const ServeArguments& arguments) {
    exchange->answer(label_session(state_, *exchange, arguments.empty() ? "" : arguments[0]));
  };
  add("PUT", "/session/", "MONAI Label: keeps an image for an hour", session);
  for (const char* method : {"GET", "DELETE"})
    add(method, "/session/{id}", "MONAI Label: an image that is kept; forgets it", session);
  add("POST",
      "/activelearning/{strategy}",
      "MONAI Label: the next image to label",
      [this](const auto& exchange, const ServeArguments& arguments) {
        label_next(state_, arguments[0], exchange);
      });
  const auto train = [this](const auto& exchange, const ServeArguments& arguments) {
    exchange->answer(label_train(state_, *exchange, arguments.empty() ? "" : arguments[0]));
  };
  for (const char* method : {"GET", "DELETE", "POST"})
    add(method, "/train/", "MONAI Label: the last training; ends it; starts one", train);
  add("POST", "/train/{model}", "MONAI Label: trains a model from the final labels", train);
  const auto tell = [this](const char* method,
                           const char* path,
                           const char* summary,
                           auto own,
                           bool is_open = false) {
    routes_.push_back({method, path, summary, own, {}, is_open});
  };
  // The password of any user is the token.
  tell(
      "GET",
      "/auth/",
      "MONAI Label: whether a token is needed",
      [this](const auto&, const auto&) {
        Node answer = Node::make_map();
        answer.set("enabled", Node::make_boolean(!state_.token.empty()));
        return http_json(answer);
      },
      true);
  tell("GET",
       "/auth/token/valid",
       "MONAI Label: whether the token is right",
       [](const auto&, const auto&) { return http_json(Node::make_map()); });
  tell(
      "POST",
      "/auth/token",
      "MONAI Label: the token for a password, which is the token",
      [this](const HttpExchange& exchange, const auto&) {
        const std::string given = form_value(exchange.body, "password");
        if (!is_token(given))
          throw HttpError(401, "the password is another one than the server's token");
        Node answer = Node::make_map();
        answer.set("access_token", Node::make_string(given));
        answer.set("token_type", Node::make_string("bearer"));
        return http_json(answer);
      },
      true);
}

}  // namespace cytra::app
