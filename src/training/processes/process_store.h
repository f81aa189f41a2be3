#pragma once
// Where the processes of a training meet: a c10d store whose values only they can write. For
// processes.cpp.
#include <chrono>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "training/processes/processes.h"

namespace cytra::training {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// Every value carries a code that follows from its key and the token (HMAC-SHA1): who does not
/// know the token can read, delete and disturb, but write nothing that is believed. Numbers
/// (`add`) carry none.
class SealedStore final : public c10d::Store {
 public:
  SealedStore(StorePtr store, std::string token);
  using Store::compareSet;
  using Store::set;
  StorePtr clone() override;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  /// Takes a value that is not sealed for none.
  std::vector<uint8_t> compareSet(const std::string& key,
                                  const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  /// Throws: c10::DistStoreError for a value that is not sealed.
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  std::vector<uint8_t> sealed(const std::string& key, const std::vector<uint8_t>& value) const;
  std::optional<std::vector<uint8_t>> opened(const std::string& key,
                                             const std::vector<uint8_t>& value) const;
  StorePtr store_;
  std::string token_;
};

/// The value of a key, or nothing when it is not there, is not sealed or is longer than `most`.
std::optional<std::string> read(c10d::Store& store, const std::string& key, std::size_t most);

/// Rank 0's server: on the loopback interface when all processes are on this machine. Sets
/// place.port. Throws: IoError when the port is taken.
c10::intrusive_ptr<c10d::TCPStore> serve_store(ProcessPlace& place,
                                               std::chrono::milliseconds timeout);
/// May block for longer than `timeout` when who listens there is silent. Throws: c10::Error.
StorePtr connect_store(const ProcessPlace& place, std::chrono::milliseconds timeout);

}  // namespace cytra::training
