#pragma once
// Pages of a browser. They hold no secret, so anyone may have them; what they ask the server for
// needs the token.
#include "app/serve/http/http.h"

namespace cytra::app {

/// What a page consists of; `type`: "text/css".
HttpResponse page_part(std::string text, const std::string& type);
/// A page that may run and load nothing but what this server has; `has_styles`: it may hold styles
/// of its own, as reports do.
HttpResponse html_response(std::string body, bool has_styles = false);

}  // namespace cytra::app
