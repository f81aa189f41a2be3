#pragma once
// The network of `serve`: connections, limits, slow and vanished clients. One thread, and no thread
// for a connection.
#include <cstdint>
#include <memory>
#include <string>

#include "app/serve/http/http.h"

namespace cytra::app {

struct HttpLimits {
  int64_t connections = 1024;               // the longest idle one makes room for the next
  int64_t header_bytes = 16 << 10;          // request line and headers, together
  int64_t body_bytes = int64_t{256} << 20;  // of a request
  double header_s = 10;                     // until the head of a request is there
  double idle_s = 60;                       // between two requests of a connection
  double bytes_per_second = 100'000;        // slower bodies and readers are cut off
  double timeout_s = 300;                   // until the answer
};

class HttpServer {
 public:
  /// Opens the port (0: any free one), or a socket of the file system for "unix:PATH". Throws:
  /// ConfigError for an address that can't be used. `handler` must outlive this.
  HttpServer(const std::string& host, int64_t port, const HttpLimits& limits, HttpHandler& handler);
  ~HttpServer();

  /// The address: "http://127.0.0.1:8000", or "unix:PATH".
  const std::string& address() const;
  int64_t port() const;  // 0: a socket of the file system
  int64_t connections() const;
  /// Starts the thread that serves.
  void start();
  /// Waits until every exchange is answered, at most some seconds; connections are closed after
  /// their answer. False: the time was over.
  bool drain(double seconds);
  /// Closes everything.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether only programs of this machine reach an address: 127.0.0.0/8, ::1, localhost, a socket of
/// the file system.
bool is_loopback(const std::string& host);

}  // namespace cytra::app
