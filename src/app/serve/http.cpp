#include "app/serve/http.h"

#include <mutex>

#include "base/strings.h"
#include "config/json.h"

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
    if (starts_with(pair, name + "=")) return url_decoded(pair.substr(name.size() + 1), true);
  return "";
}

HttpResponse http_json(const config::Node& body) {
  return {200, config::to_plain_json(config::to_utf8(body)) + "\n"};
}

HttpResponse error_response(int status, const std::string& what, const std::string& allow) {
  config::Node body = config::Node::make_map();
  body.set("error", config::Node::make_string(what));
  HttpResponse response{status, config::to_plain_json(config::to_utf8(body)) + "\n"};
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"cytra\"");
  if (!allow.empty()) response.headers.emplace_back("Allow", allow);
  return response;
}

struct HttpRoom::State {
  const int64_t most_requests, most_bytes;
  std::mutex mutex;
  int64_t requests = 0, bytes = 0;
};

class HttpRoom::Held final : public Place {
 public:
  Held(std::shared_ptr<State> state, int64_t bytes, int64_t requests)
      : state_(std::move(state)), requests_(requests), bytes_(bytes) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() override {
    const std::lock_guard lock(state_->mutex);
    state_->requests -= requests_;
    state_->bytes -= bytes_;
  }
  bool grow(int64_t bytes) override {
    const std::lock_guard lock(state_->mutex);
    if (bytes > state_->most_bytes - state_->bytes) return false;
    state_->bytes += bytes;
    bytes_ += bytes;
    return true;
  }
  bool hold_answer(int64_t bytes) override {
    const std::lock_guard lock(state_->mutex);
    if (bytes - bytes_ > state_->most_bytes - state_->bytes) return false;
    state_->requests -= std::exchange(requests_, 0);
    state_->bytes += bytes - bytes_;
    bytes_ = bytes;
    return true;
  }

 private:
  const std::shared_ptr<State> state_;
  int64_t requests_, bytes_;
};

HttpRoom::HttpRoom(int64_t requests, int64_t bytes) : state_(new State{requests, bytes}) {}

std::unique_ptr<HttpRoom::Place> HttpRoom::enter(int64_t bytes, int64_t requests) {
  {
    const std::lock_guard lock(state_->mutex);
    if (requests > state_->most_requests - state_->requests ||
        bytes > state_->most_bytes - state_->bytes)
      return nullptr;
    state_->requests += requests;
    state_->bytes += bytes;
  }
  return std::make_unique<Held>(state_, bytes, requests);
}

int64_t HttpRoom::requests() const {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}

int64_t HttpRoom::most_bytes() const {
  return state_->most_bytes;
}

int64_t HttpRoom::bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

}  // namespace cytra::app
