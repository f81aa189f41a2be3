// Multipart forms: a line with the Content-Type, then the body.
#include <algorithm>

#include "app/serve/http/form_data.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace cytra;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(text.find('\n'), size);
  const std::string body = text.substr(std::min(line + 1, size));
  fuzz::run<app::HttpError>([&] { app::form_value(body, "params"); });
  fuzz::run<app::HttpError>([&] {
    std::vector<app::FormPart> parts = app::parse_form(text.substr(0, line), body);
    for (app::FormPart& part : parts) {
      fuzz::require(app::find_part(parts, part.name) != nullptr, "each part has its name");
      fuzz::run<app::HttpError>([&] { app::filename_in(part.content); });
    }
    for (app::FormPart& part : parts) part.name = part.filename = part.type = "a";
    const app::HttpResponse written = app::form_response(parts);
    const std::vector<app::FormPart> again = app::parse_form(written.type, written.body);
    fuzz::require(std::equal(parts.begin(),
                             parts.end(),
                             again.begin(),
                             again.end(),
                             [](const auto& a, const auto& b) { return a.content == b.content; }),
                  "a round trip changes nothing");
    app::file_part(parts);
  });
  return 0;
}
