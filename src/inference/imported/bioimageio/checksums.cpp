// Part of inference/imported/bioimageio/package.h: the checksums of the package's files.
#include <fmt/format.h>

#include "base/sha256.h"
#include "base/strings.h"
#include "inference/imported/bioimageio/package.h"

namespace cytra::inference {
using config::Node;

/// Checks all files of the package whose `sha256` is beside their `source`.
void Package::expect_checksums(const Node& node) const {
  for (const Node& entry : node.list) expect_checksums(entry);
  for (const auto& [key, entry] : node.map) expect_checksums(entry);
  const Node *sum = node.find_direct("sha256"), *source = node.find_direct("source");
  if (sum == nullptr || sum->is_null() || source == nullptr || source->is_map()) return;
  const std::string path = path_of(*source);
  if (path.empty()) return;
  std::string expected = sum->as<std::string>();
  for (char& digit : expected) digit = digit >= 'A' && digit <= 'F' ? digit - 'A' + 'a' : digit;
  const std::string found = sha256_of_file(path);
  if (found != expected) {
    refuse_package(*sum,
                   fmt::format("{}: its SHA-256 is {}, expected {}; the file is damaged or another "
                               "one: fetch the package again",
                               path,
                               found,
                               printable(expected)));
  }
}

}  // namespace cytra::inference
