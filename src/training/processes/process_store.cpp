#include "training/processes/process_store.h"

#include <cerrno>

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <c10/util/hash.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::training {
namespace {

constexpr std::size_t kSeal = 40;  // hexadecimal digits of a SHA-1

/// RFC 2104.
std::string hmac(std::string key, const std::string& text) {
  constexpr std::size_t kBlock = 64;
  if (key.size() > kBlock) key = c10::sha1(key).str();
  key.resize(kBlock, '\0');
  std::string inner = key, outer = key;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  return c10::sha1(outer + c10::sha1(inner + text).str()).str();
}

/// A socket that listens on 127.0.0.1 alone. Sets `port` when it is 0.
int listen_on_loopback(uint16_t& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (socket < 0 || ::bind(socket, any, size) != 0 || ::listen(socket, SOMAXCONN) != 0 ||
      ::getsockname(socket, any, &size) != 0) {
    const int error = errno;
    ::close(socket);
    throw IoError("can't listen on 127.0.0.1:{} (MASTER_PORT): {}",
                  port,
                  std::generic_category().message(error));
  }
  port = ntohs(address.sin_port);
  return socket;
}

}  // namespace

SealedStore::SealedStore(StorePtr store, std::string token)
    : Store(store->getTimeout()), store_(std::move(store)), token_(std::move(token)) {}

StorePtr SealedStore::clone() {
  return c10::make_intrusive<SealedStore>(store_->clone(), token_);
}

std::vector<uint8_t> SealedStore::sealed(const std::string& key,
                                         const std::vector<uint8_t>& value) const {
  const std::string seal =
      hmac(token_, fmt::format("{} {}", key.size(), key) + std::string(value.begin(), value.end()));
  std::vector<uint8_t> all(seal.begin(), seal.end());
  all.insert(all.end(), value.begin(), value.end());
  return all;
}

std::optional<std::vector<uint8_t>> SealedStore::opened(const std::string& key,
                                                        const std::vector<uint8_t>& value) const {
  if (value.size() < kSeal) return std::nullopt;
  std::vector<uint8_t> inner(value.begin() + kSeal, value.end());
  if (sealed(key, inner) != value) return std::nullopt;
  return inner;
}

void SealedStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  store_->set(key, sealed(key, value));
}

std::vector<uint8_t> SealedStore::compareSet(const std::string& key,
                                             const std::vector<uint8_t>& expected,
                                             const std::vector<uint8_t>& desired) {
  const std::vector<uint8_t> mine = sealed(key, desired);
  const auto there = opened(
      key, store_->compareSet(key, expected.empty() ? expected : sealed(key, expected), mine));
  if (there) return *there;
  store_->set(key, mine);
  return desired;
}

std::vector<uint8_t> SealedStore::get(const std::string& key) {
  auto value = opened(key, store_->get(key));
  if (!value) {
    C10_THROW_ERROR(DistStoreError,
                    "the value of '" + key + "' is not from a process of this training");
  }
  return std::move(*value);
}

int64_t SealedStore::add(const std::string& key, int64_t value) {
  return store_->add(key, value);
}
bool SealedStore::deleteKey(const std::string& key) {
  return store_->deleteKey(key);
}
bool SealedStore::check(const std::vector<std::string>& keys) {
  return store_->check(keys);
}
int64_t SealedStore::getNumKeys() {
  return store_->getNumKeys();
}
void SealedStore::wait(const std::vector<std::string>& keys) {
  store_->wait(keys);
}
void SealedStore::wait(const std::vector<std::string>& keys,
                       const std::chrono::milliseconds& timeout) {
  store_->wait(keys, timeout);
}

std::optional<std::string> read(c10d::Store& store, const std::string& key, std::size_t most) {
  if (!store.check({key})) return std::nullopt;
  try {
    const std::vector<uint8_t> bytes = store.get(key);
    if (bytes.size() <= most) return std::string(bytes.begin(), bytes.end());
  } catch (const c10::DistNetworkError&) {
    throw;
  } catch (const c10::DistStoreError&) {  // written by another program
  }
  return std::nullopt;
}

c10::intrusive_ptr<c10d::TCPStore> serve_store(ProcessPlace& place,
                                               std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = timeout;
  if (place.local_size == place.size) options.masterListenFd = listen_on_loopback(place.port);
  options.port = place.port;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(place.host, options);
    place.port = store->getPort();
    return store;
  } catch (const std::exception& error) {
    throw IoError("rank 0: can't listen on port {} (MASTER_PORT): {}",
                  place.port,
                  split(error.what(), '\n').front());
  }
}

StorePtr connect_store(const ProcessPlace& place, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.waitWorkers = false;
  options.timeout = timeout;
  StorePtr store = c10::make_intrusive<c10d::TCPStore>(place.host, options);
  store = c10::make_intrusive<SealedStore>(std::move(store), place.token);
  return c10::make_intrusive<c10d::PrefixStore>("cytra/" + place.attempt, std::move(store));
}

}  // namespace cytra::training
