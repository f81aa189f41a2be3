#include "app/serve/page/page.h"

#include <utility>

namespace cytra::app {

HttpResponse page_part(std::string text, const std::string& type) {
  return {200, std::move(text), type + "; charset=utf-8", {{"Referrer-Policy", "no-referrer"}}};
}

HttpResponse html_response(std::string body, bool has_styles) {
  HttpResponse response = page_part(std::move(body), "text/html");
  response.headers.emplace_back(
      "Content-Security-Policy",
      std::string("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
                  "'none'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
                  "style-src 'self'") +
          (has_styles ? " 'unsafe-inline'" : ""));
  return response;
}

}  // namespace cytra::app
