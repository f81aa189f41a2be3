#include "app/serve/http/http.h"

#include <mutex>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/random.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::app {

std::string HttpHead::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string HttpHead::parameter(const std::string& name, const std::string& fallback) const {
  const auto found = query.find(name);
  return found == query.end() ? fallback : found->second;
}

std::string url_decoded(const std::string& text, bool is_query) {
  const auto digit = [&](std::size_t at) {
    const char c = at < text.size() ? text[at] : '\0';
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw HttpError(400, "% in the address, expected two hexadecimal digits after it");
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && is_query) c = ' ';
    if (c == '%') {
      c = static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
      if (c == '\0') throw HttpError(400, "%00 in the address stands for no letter");
      i += 2;
    }
    decoded += c;
  }
  return decoded;
}

std::string form_value(const std::string& form, const std::string& name) {
  for (const std::string& pair : split(form, '&'))
    if (pair.starts_with(name + "=")) return url_decoded(pair.substr(name.size() + 1), true);
  return "";
}

HttpResponse http_json(const Json& body, int status) {
  return {status, body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

HttpResponse error_response(int status, const std::string& what, const std::string& allow) {
  HttpResponse response = http_json({{"error", what}}, status);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"cytra\"");
  if (!allow.empty()) response.headers.emplace_back("Allow", allow);
  return response;
}

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

std::string new_secret() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw IoError("getrandom: the system gives no random numbers");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

struct RequestBudget::State {
  const int64_t most_requests, most_bytes;
  std::mutex mutex;
  int64_t requests = 0, bytes = 0;
};

RequestBudget::RequestBudget(int64_t requests, int64_t bytes)
    : state_(new State{requests, bytes}) {}

bool RequestBudget::Share::resize(int64_t requests, int64_t bytes) {
  State& state = *state_;
  const int64_t more_requests = requests - requests_, more_bytes = bytes - bytes_;
  const std::lock_guard lock(state.mutex);
  if (more_requests > state.most_requests - state.requests ||
      more_bytes > state.most_bytes - state.bytes)
    return false;
  state.requests += more_requests;
  state.bytes += more_bytes;
  requests_ = requests;
  bytes_ = bytes;
  return true;
}

std::unique_ptr<RequestBudget::Share> RequestBudget::take(int64_t bytes, int64_t requests) const {
  auto share = std::make_unique<Share>(state_);
  return share->resize(requests, bytes) ? std::move(share) : nullptr;
}

int64_t RequestBudget::requests() const {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}

int64_t RequestBudget::most_bytes() const {
  return state_->most_bytes;
}

int64_t RequestBudget::bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

}  // namespace cytra::app
