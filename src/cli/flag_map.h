#pragma once
#include <string>
#include <vector>

namespace cytra::cli {

/// A command line in which `--flag A=x B=y` has become the overrides `++map.A=x ++map.B=y`, and
/// `--flag x` has become `key=x`: for a value that may differ from case to case. A word belongs to
/// the flag as long as the part before its "=" is a plain name.
class FlagMap {
 public:
  FlagMap(const std::string& flag,
          const std::string& key,
          const std::string& map,
          int argc,
          char** argv);
  int count() const { return static_cast<int>(words_.size()); }
  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;  // as main() gets them
};

}  // namespace cytra::cli
