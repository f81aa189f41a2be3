// One class round one connection: its states follow each other by callbacks, in one thread.
#include "app/serve/http/http_server.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "app/serve/http/request_progress.h"
#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/version.h"

namespace cytra::app {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;
using ErrorCode = boost::system::error_code;
using Socket = net::generic::stream_protocol::socket;
using Tcp = net::ip::tcp;
using Local = net::local::stream_protocol;

constexpr std::size_t kMostTarget = 8 << 10;  // bytes
// For a client that still sends while its error is under way, and for one that reads its answer.
constexpr double kLingerSeconds = 2, kGraceSeconds = 10;
constexpr const char* kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";

Clock::duration in_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string text_of_view(const auto& view) {  // Boost has had several types of it
  return {view.data(), view.size()};
}

bool is_of_http(const ErrorCode& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category();
}

/// The status for a request that can't be parsed.
int status_of(const ErrorCode& error) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  if (error == http::error::bad_version) return 505;
  return 400;
}

/// The path and the parameters of a request's target.
void split_target(const std::string& target, HttpHead& head) {
  if (target.size() > kMostTarget)
    throw HttpError(414, "the address has more than {} bytes", kMostTarget);
  if (target.empty() || target.front() != '/')
    throw HttpError(400, "the target of the request begins with no /, expected a path");
  const std::size_t mark = target.find('?');
  head.path = url_decoded(target.substr(0, mark), false);
  if (mark == std::string::npos) return;
  for (const std::string& pair : split(target.substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const std::size_t is = pair.find('=');
    const std::string name = url_decoded(pair.substr(0, is), true);
    const std::string value = is == std::string::npos ? "" : url_decoded(pair.substr(is + 1), true);
    if (!head.query.emplace(name, value).second)
      throw HttpError(400, "{}: given twice, expected once", printable(name));
  }
}

HttpHead head_of(const auto& parser) {
  const auto& message = parser.get();
  HttpHead head;
  head.method = text_of_view(message.method_string());
  if (head.method == "HEAD") head.method = "GET";  // only the answer's body is left out
  for (const auto& field : message) {
    std::string& value = head.headers[in_small_letters(text_of_view(field.name_string()))];
    if (!value.empty()) value += ", ";
    value += text_of_view(field.value());
  }
  const auto length = parser.content_length();
  if (length) head.length = static_cast<int64_t>(*length);
  if (!length && parser.is_done()) head.length = 0;
  if (message.version() == 11 && head.headers.count("host") == 0)
    throw HttpError(400, "no Host, which HTTP/1.1 asks for");
  const std::string transfer = in_small_letters(head.header("transfer-encoding"));
  if (!transfer.empty() && transfer != "chunked")
    throw HttpError(501, "Transfer-Encoding: expected chunked, or none");
  const std::string coding = in_small_letters(head.header("content-encoding"));
  if (!coding.empty() && coding != "identity")
    throw HttpError(415, "Content-Encoding: bodies are taken as they are, expected none");
  split_target(text_of_view(message.target()), head);
  return head;
}

/// What is said of a request above a limit. `length`: Content-Length, where the client gave it.
std::string text_of_limit(const ErrorCode& error,
                          const HttpLimits& limits,
                          const std::string& length) {
  if (error == http::error::header_limit)
    return fmt::format("the head has more than {} kB: limits.header_kb", limits.header_bytes >> 10);
  const double most = static_cast<double>(limits.body_bytes) / 1e6;
  const double own = std::strtod(length.c_str(), nullptr) / 1e6;
  const std::string size =
      own > most ? fmt::format("{:.1f}", std::ceil(10 * own) / 10) : fmt::format("above {}", most);
  return fmt::format("the body: {} MB, expected at most {}: limits.body_mb", size, most);
}

/// A value that may stand in a header.
std::string header_value(std::string text) {
  for (char& c : text)
    if (is_control(c)) c = ' ';
  return text;
}

class Connection;

/// What the connections share.
struct Service : std::enable_shared_from_this<Service> {
  Service(const HttpLimits& given, HttpHandler& work)
      : limits(given), handler(work), tcp(io), local(io), retry(io) {}
  void open_tcp(const std::string& host, int64_t number);
  void open_local(const std::string& path);
  void accept(auto& acceptor);
  bool make_room();
  void close();
  void count(int64_t more_connections, int64_t more_exchanges) {
    const std::lock_guard lock(mutex);
    connections += more_connections;
    exchanges += more_exchanges;
    changed.notify_all();
  }

  const HttpLimits limits;
  HttpHandler& handler;
  net::io_context io{1};
  Tcp::acceptor tcp;
  Local::acceptor local;
  net::steady_timer retry;
  std::string address, socket_path;
  int64_t port = 0;
  // Used by the thread that serves alone.
  std::list<Connection*> idle;  // those that wait for a request, the longest first
  std::list<std::weak_ptr<Connection>> all;
  bool is_draining = false;
  // Guarded by mutex.
  mutable std::mutex mutex;
  std::condition_variable changed;
  int64_t connections = 0, exchanges = 0;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Service> service, Socket socket)
      : service_(std::move(service)),
        socket_(std::move(socket)),
        timer_(service_->io),
        buffer_(static_cast<std::size_t>(service_->limits.header_bytes) + (128 << 10)) {
    service_->count(1, 0);
  }
  ~Connection() { service_->count(-1, is_counted_ ? -1 : 0); }

  void begin() { read_head(service_->limits.header_s); }
  void close() {
    ErrorCode ignored;
    leave_idle();
    timer_.cancel();
    socket_.close(ignored);
    if (exchange_) end_exchange();
    count_exchange(false);
  }

 private:
  class Exchange;
  using Parser = http::request_parser<http::string_body>;
  using Response = http::response<http::string_body>;

  /// Calls `late` when the time is over, unless another time is set before.
  void set_time(double seconds, void (Connection::*late)()) {
    timer_.expires_after(in_seconds(seconds));
    timer_.async_wait([self = shared_from_this(), late](const ErrorCode& error) {
      if (!error && Clock::now() >= self->timer_.expiry()) ((*self).*late)();
    });
  }
  /// Calls `next` when something is read or written.
  auto then(void (Connection::*next)(const ErrorCode&)) {
    return [self = shared_from_this(), next](const ErrorCode& error, std::size_t) {
      ((*self).*next)(error);
    };
  }
  void count_exchange(bool is_open) {
    if (!is_open) share_.reset();
    if (is_counted_ == is_open) return;
    is_counted_ = is_open;
    service_->count(0, is_open ? 1 : -1);
  }
  double seconds_so_far() const {
    return std::chrono::duration<double>(Clock::now() - begun_).count();
  }
  void count(int status) {
    if (has_head_) service_->handler.count(head_, status, seconds_so_far());
  }
  void leave_idle() {
    if (std::exchange(is_idle_, false)) service_->idle.erase(idle_);
  }
  /// Interrupts what is being read.
  void interrupt() {
    is_late_ = true;
    ErrorCode ignored;
    socket_.cancel(ignored);
  }
  void read_head(double seconds);
  void take_head(const ErrorCode& error);
  void read_body();
  void take_body(const ErrorCode& error);
  void handle();
  void watch();
  void end_exchange();
  void time_out();
  void refuse(int status, const std::string& what, const std::string& allow = "");
  void write(HttpResponse answer, bool keeps);
  void finish_write(const ErrorCode& error);
  void linger(const ErrorCode& error);

  const std::shared_ptr<Service> service_;
  Socket socket_;
  net::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::list<Connection*>::iterator idle_;
  std::unique_ptr<RequestBudget::Share> share_;
  HttpHead head_;
  Clock::time_point begun_;
  std::size_t counted_bytes_ = 0;  // of a body that comes in chunks
  std::shared_ptr<Exchange> exchange_;
  std::optional<Response> response_;
  bool is_idle_ = false, is_late_ = false, is_counted_ = false, has_head_ = false;
};

class Connection::Exchange final : public HttpExchange,
                                   public std::enable_shared_from_this<Exchange> {
 public:
  explicit Exchange(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  void answer(HttpResponse response) override {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_answered_, true)) return;
      cancel_ = nullptr;
    }
    net::post(connection_->service_->io,
              [self = shared_from_this(), own = std::move(response)]() mutable {
                Connection& connection = *self->connection_;
                if (connection.exchange_ != self) return;  // nobody waits any more
                connection.end_exchange();
                if (auto& share = connection.share_;
                    share && !share->hold_answer(std::ssize(own.body))) {
                  share.reset();
                  own = error_response(503, "the server is full, the answer has no room");
                }
                if (self->progress && own.status == 200)
                  own.headers.emplace_back("Progress-Total",
                                           std::to_string(self->progress->windows().total));
                connection.write(std::move(own), true);
              });
  }
  void on_end(std::function<void()> cancel) override {
    {
      const std::lock_guard lock(mutex_);
      if (!has_ended_) {
        if (!is_answered_) cancel_ = std::move(cancel);
        return;
      }
    }
    cancel();
  }
  void expire_in(double seconds) override {
    net::post(connection_->service_->io, [self = shared_from_this(), seconds] {
      Connection& connection = *self->connection_;
      if (connection.exchange_ == self) connection.set_time(seconds, &Connection::time_out);
    });
  }
  void end() {
    if (progress) progress->end();
    std::function<void()> cancel;
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
      cancel = std::exchange(cancel_, nullptr);
    }
    if (cancel) cancel();
  }

 private:
  const std::shared_ptr<Connection> connection_;
  std::mutex mutex_;
  std::function<void()> cancel_;
  bool is_answered_ = false, has_ended_ = false;
};

void Connection::read_head(double seconds) {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(service_->limits.header_bytes));
  parser_->body_limit(static_cast<std::uint64_t>(service_->limits.body_bytes));
  response_.reset();
  head_ = {};
  has_head_ = is_late_ = false;
  counted_bytes_ = 0;
  idle_ = service_->idle.insert(service_->idle.end(), this);
  is_idle_ = true;
  set_time(seconds, &Connection::interrupt);
  http::async_read_header(socket_, buffer_, *parser_, then(&Connection::take_head));
}

void Connection::take_head(const ErrorCode& error) {
  leave_idle();
  timer_.cancel();
  begun_ = Clock::now();
  if (!socket_.is_open()) return;
  if (is_late_ && (buffer_.size() > 0 || parser_->got_some()))
    return refuse(408, "the request came too slowly");
  if (is_late_ || error == http::error::end_of_stream) return close();
  if (error && !is_of_http(error)) return close();  // the client has gone
  const bool is_large = error == http::error::header_limit || error == http::error::body_limit;
  if (is_large) {
    const auto length = text_of_view(parser_->get()[http::field::content_length]);
    return refuse(status_of(error), text_of_limit(error, service_->limits, length));
  }
  if (error) return refuse(status_of(error), "the request is not HTTP: " + error.message());
  try {
    head_ = head_of(*parser_);
    has_head_ = true;
    share_ = service_->handler.admit(head_);
  } catch (const HttpError& refused) {
    return refuse(refused.status, refused.what(), refused.allow);
  }
  count_exchange(true);
  if (head_.method == "GET" || head_.method == "DELETE")
    return handle();  // their bodies mean nothing
  const std::string expected = in_small_letters(head_.header("expect"));
  if (expected.empty() || parser_->is_done()) return read_body();
  if (expected != "100-continue") return refuse(417, "Expect: expected 100-continue, or none");
  set_time(kGraceSeconds, &Connection::close);
  net::async_write(socket_,
                   net::buffer(kGoOn, std::char_traits<char>::length(kGoOn)),
                   [self = shared_from_this()](const ErrorCode& failed, std::size_t) {
                     if (failed) return self->close();
                     self->read_body();
                   });
}

void Connection::read_body() {
  if (parser_->is_done()) return handle();
  const auto seen = static_cast<double>(parser_->get().body().size());
  set_time(kGraceSeconds + seen / service_->limits.bytes_per_second - seconds_so_far(),
           &Connection::interrupt);
  http::async_read_some(socket_, buffer_, *parser_, then(&Connection::take_body));
}

void Connection::take_body(const ErrorCode& error) {
  timer_.cancel();
  if (!socket_.is_open()) return;
  if (is_late_) return refuse(408, "the body came too slowly");
  if (error == http::error::body_limit)
    return refuse(413, text_of_limit(error, service_->limits, ""));
  if (error == http::error::partial_message || (error && !is_of_http(error))) return close();
  if (error) return refuse(status_of(error), "the body is not HTTP: " + error.message());
  if (!head_.length && share_) {
    const std::size_t size = parser_->get().body().size();
    if (!share_->grow(static_cast<int64_t>(size - counted_bytes_)))
      return refuse(503, "the server is full: limits.requests_mb");
    counted_bytes_ = size;
  }
  read_body();
}

void Connection::handle() {
  exchange_ = std::make_shared<Exchange>(shared_from_this());
  exchange_->head = head_;
  exchange_->body = std::move(parser_->get().body());
  set_time(service_->limits.timeout_s, &Connection::time_out);
  watch();
  service_->handler.handle(exchange_);
}

/// Notices a client that goes while it is being answered.
void Connection::watch() {
  socket_.async_wait(Socket::wait_read,
                     [self = shared_from_this(), exchange = exchange_](const ErrorCode& error) {
                       if (error || self->exchange_ != exchange) return;
                       char next = 0;
                       const ssize_t count =
                           ::recv(self->socket_.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
                       if (count > 0) return;  // its next request
                       if (count < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch();
                       self->count(499);
                       self->close();
                     });
}

/// Ends the exchange: its work is cancelled unless it is done.
void Connection::end_exchange() {
  ErrorCode ignored;
  timer_.cancel();
  if (socket_.is_open()) socket_.cancel(ignored);
  std::exchange(exchange_, nullptr)->end();
}

void Connection::time_out() {
  if (!exchange_) return;
  end_exchange();
  refuse(504, "there was no answer in time: limits.timeout_s, or the request's timeout");
}

void Connection::refuse(int status, const std::string& what, const std::string& allow) {
  share_.reset();
  write(error_response(status, what, allow), parser_->is_done());
}

void Connection::write(HttpResponse answer, bool keeps) {
  count(answer.status);
  response_.emplace();
  response_->version(11);
  response_->result(static_cast<unsigned>(answer.status));
  response_->set(http::field::server, std::string("cytra/") + version());
  response_->set(http::field::content_type, header_value(answer.type));
  response_->set("X-Content-Type-Options", "nosniff");
  response_->set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : answer.headers) response_->set(name, header_value(value));
  response_->keep_alive(keeps && has_head_ && parser_->is_done() && parser_->get().keep_alive() &&
                        !service_->is_draining);
  const std::size_t size = answer.body.size();
  if (parser_->get().method() != http::verb::head) response_->body() = std::move(answer.body);
  response_->content_length(size);
  const double seconds =
      kGraceSeconds + static_cast<double>(size) / service_->limits.bytes_per_second;
  set_time(seconds, &Connection::close);
  http::async_write(socket_, *response_, then(&Connection::finish_write));
}

void Connection::finish_write(const ErrorCode& error) {
  timer_.cancel();
  const bool keeps = response_->keep_alive();
  response_.reset();
  count_exchange(false);
  if (error || !socket_.is_open()) return close();
  if (keeps) return read_head(service_->limits.idle_s);
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  set_time(kLingerSeconds, &Connection::close);
  linger({});
}

/// Reads what the client still sends, so that closing does not take the answer from it.
void Connection::linger(const ErrorCode& error) {
  if (error) return close();
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(64 << 10), then(&Connection::linger));
}

void Service::open_tcp(const std::string& host, int64_t number) {
  ErrorCode error;
  Tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(number), Tcp::resolver::passive, error);
  if (error || found.empty())
    throw ConfigError("host: {}: {}, expected an address of this machine", host, error.message());
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  const auto check = [&] {
    if (!error) return;
    throw ConfigError(
        "port: {}: {}{}",
        number,
        error.message(),
        error == net::error::address_in_use ? "; expected a free one, or 0, which picks one" : "");
  };
  tcp.open(endpoint.protocol(), error);
  check();
  tcp.set_option(Tcp::acceptor::reuse_address(true), error);
  tcp.bind(endpoint, error);
  check();
  tcp.listen(1024, error);
  check();
  port = tcp.local_endpoint().port();
  const std::string ip = endpoint.address().to_string();
  address = endpoint.address().is_v6() ? fmt::format("http://[{}]:{}", ip, port)
                                       : fmt::format("http://{}:{}", ip, port);
}

void Service::open_local(const std::string& path) {
  ErrorCode error;
  const auto fail = [&](const std::string& why) {
    throw ConfigError("host: unix:{}: {}", path, why);
  };
  if (path.empty() || path.size() > 107) fail("expected a path of 1 to 107 bytes");
  const Local::endpoint endpoint(path);
  if (std::error_code ignored; std::filesystem::is_socket(path, ignored)) {
    Local::socket other(io);
    other.connect(endpoint, error);
    if (!error) fail("another server listens there");
    std::filesystem::remove(path, ignored);  // what a server that was killed has left
  }
  local.open(endpoint.protocol());
  const mode_t mask = ::umask(0077);  // for this user alone
  local.bind(endpoint, error);
  ::umask(mask);
  if (error) fail(error.message());
  local.listen(1024, error);
  if (error) fail(error.message());
  address = "unix:" + path;
  socket_path = path;
}

template <class Acceptor>
void Service::accept(Acceptor& acceptor) {
  acceptor.async_accept(
      [this, &acceptor, self = shared_from_this()](const ErrorCode& error, auto socket) {
        if (!acceptor.is_open()) return;
        if (error) {  // too many open files: one that closes makes room
          make_room();
          retry.expires_after(std::chrono::milliseconds(100));
          retry.async_wait([this, &acceptor, self](const ErrorCode& stopped) {
            if (!stopped) accept(acceptor);
          });
          return;
        }
        all.remove_if([](const auto& one) { return one.expired(); });
        if (std::ssize(all) < limits.connections || make_room()) {
          ErrorCode ignored;
          if constexpr (std::is_same_v<Acceptor, Tcp::acceptor>)
            socket.set_option(Tcp::no_delay(true), ignored);
          auto connection = std::make_shared<Connection>(self, Socket(std::move(socket)));
          all.push_back(connection);
          connection->begin();
        }
        accept(acceptor);
      });
}

/// Closes the connection that waits longest for a request. False: there is none.
bool Service::make_room() {
  if (idle.empty()) return false;
  idle.front()->close();
  return true;
}

void Service::close() {
  ErrorCode ignored;
  tcp.close(ignored);
  local.close(ignored);
  retry.cancel();
  for (const auto& one : std::exchange(all, {}))
    if (const auto connection = one.lock()) connection->close();
}

}  // namespace

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host.starts_with("unix:")) return true;
  ErrorCode error;
  const auto address = net::ip::make_address(host, error);
  return !error && address.is_loopback();
}

struct HttpServer::Impl {
  std::shared_ptr<Service> service;
  std::optional<net::executor_work_guard<net::io_context::executor_type>> guard;
  std::thread thread;
};

HttpServer::HttpServer(const std::string& host,
                       int64_t port,
                       const HttpLimits& limits,
                       HttpHandler& handler)
    : impl_(std::make_unique<Impl>()) {
  impl_->service = std::make_shared<Service>(limits, handler);
  if (host.starts_with("unix:")) {
    impl_->service->open_local(host.substr(5));
  } else {
    impl_->service->open_tcp(host, port);
  }
}

HttpServer::~HttpServer() {
  stop();
}

const std::string& HttpServer::address() const {
  return impl_->service->address;
}

int64_t HttpServer::port() const {
  return impl_->service->port;
}

int64_t HttpServer::connections() const {
  const std::lock_guard lock(impl_->service->mutex);
  return impl_->service->connections;
}

void HttpServer::start() {
  Service& service = *impl_->service;
  impl_->guard.emplace(service.io.get_executor());
  if (service.tcp.is_open()) service.accept(service.tcp);
  if (service.local.is_open()) service.accept(service.local);
  impl_->thread = std::thread([own = impl_->service] { own->io.run(); });
}

bool HttpServer::drain(double seconds) {
  Service& service = *impl_->service;
  net::post(service.io, [own = impl_->service] { own->is_draining = true; });
  std::unique_lock lock(service.mutex);
  return service.changed.wait_for(
      lock, std::chrono::duration<double>(seconds), [&] { return service.exchanges == 0; });
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  net::post(impl_->service->io, [own = impl_->service] { own->close(); });
  impl_->guard.reset();
  impl_->thread.join();
  const std::string& path = impl_->service->socket_path;
  if (!path.empty()) remove_quietly(path);
}

}  // namespace cytra::app
