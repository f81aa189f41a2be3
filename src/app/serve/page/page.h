#pragma once
// The page at `/`: an image is dropped, its result is seen over it. It needs no other server.
#include "app/serve/http/http.h"

namespace cytra::app {

/// `/`, `/page.css`, `/page.js`. They hold no secret, so anyone may have them; what they ask the
/// server for needs the token.
HttpResponse page_html();
HttpResponse page_style();
HttpResponse page_script();
/// A page that may run and load nothing but what this server has; `has_styles`: it may hold styles
/// of its own, as reports do.
HttpResponse html_response(std::string body, bool has_styles = false);

}  // namespace cytra::app
