// Part of app/serve/routes/router.h: the routes of MONAI Label.
#include "app/serve/routes/router.h"

namespace cytra::app {

void Router::add_label_routes() {
  work("GET",
       "/info/",
       "MONAI Label: models, strategies, images",
       [this](const auto& exchange, const auto&) { exchange->answer(label_info(state_)); });
  work("POST",
       "/infer/{model}",
       "MONAI Label: an image's labels",
       [this](const auto& exchange, const auto& arguments) {
         label_infer(state_, *state_.model(arguments[0]), exchange);
       })
      .parameters = {kRequestId};
  const Work datastore = [this](const auto& exchange, const auto&) {
    exchange->answer(label_datastore(state_, *exchange));
  };
  for (const char* method : {"GET", "PUT", "DELETE"})
    work(method, "/datastore/", "MONAI Label: the images and labels; adds, removes one", datastore);
  work("GET", "/datastore/image", "MONAI Label: an image's file", datastore);
  for (const char* method : {"GET", "PUT"})
    work(method, "/datastore/label", "MONAI Label: a label's file; saves one", datastore);
  const Work session = [this](const auto& exchange, const auto& arguments) {
    exchange->answer(label_session(state_, *exchange, arguments[0]));
  };
  work("PUT", "/session/", "MONAI Label: keeps an image for an hour", session);
  for (const char* method : {"GET", "DELETE"})
    work(method, "/session/{id}", "MONAI Label: an image that is kept; forgets it", session);
  work("POST",
       "/activelearning/{strategy}",
       "MONAI Label: the next image to label",
       [this](const auto& exchange, const auto& arguments) {
         label_next(state_, arguments[0], exchange);
       });
  const Work train = [this](const auto& exchange, const auto& arguments) {
    exchange->answer(label_train(state_, *exchange, arguments[0]));
  };
  for (const char* method : {"GET", "DELETE", "POST"})
    work(method, "/train/", "MONAI Label: the last training; ends it; starts one", train);
  work("POST", "/train/{model}", "MONAI Label: trains a model from the final labels", train);
  tell_anyone(
      "GET", "/auth/", "MONAI Label: whether it needs a token", [this](const auto&, const auto&) {
        return http_json({{"enabled", !state_.token.empty()}});
      });
  tell("GET",
       "/auth/token/valid",
       "MONAI Label: whether the token is right",
       [](const auto&, const auto&) { return http_json(Json::object()); });
  // The password of any user is the token.
  tell_anyone("POST",
              "/auth/token",
              "MONAI Label: the token for a password, which is the token",
              [this](const HttpExchange& exchange, const auto&) {
                const std::string given = form_value(exchange.body, "password");
                if (!is_token(given))
                  throw HttpError(401, "the password is another one than the server's token");
                return http_json({{"access_token", given}, {"token_type", "bearer"}});
              });
}

}  // namespace cytra::app
