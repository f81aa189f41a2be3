#include "app/serve/http.h"

#include <mutex>

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
