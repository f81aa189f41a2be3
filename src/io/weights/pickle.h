#pragma once
// The tree that a Python pickle describes, read without running anything: a call stays a node that
// names its function. Source: CPython's Lib/pickletools.py, protocols 2 to 5.
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace cytra::io {

struct Pickle {
  enum class Kind : uint8_t {
    other,  // None, floats, sets, integers beyond 64 bits
    bytes,
    boolean,
    integer,
    text,
    list,
    tuple,
    dict,
    global,     // a class or function by its name
    call,       // of a global; also an object with the items that were set on it
    persistent  // stands for data outside of the pickle
  };
  struct Node {
    Kind kind = Kind::other;
    uint32_t function = 0;        // of a call
    uint32_t arguments = 0;       // of a call; of a persistent: its name
    uint32_t state = 0;           // what a call's object was set to; 0: nothing
    int64_t integer = 0;          // of a boolean or an integer; the number of bytes
    std::size_t place = 0;        // where bytes begin in the input
    std::string text;             // of a text; "module.name" of a global
    std::vector<uint32_t> items;  // list, tuple; dict and call: key, value, key, value, ...
  };
  /// The nodes, which refer to each other by index. A tuple's items and a call's function and
  /// arguments come before it; lists and dicts may hold themselves.
  std::deque<Node> nodes;
  uint32_t root = 0;
  std::size_t bytes = 0;  // the length of the pickle in the input
};

/// Reads one pickle from the beginning of `bytes`; `path` is for messages. Throws: DataError for
/// anything that is no complete pickle of protocols 2 to 5, and beyond 2 million values or 256 MB.
Pickle read_pickle(const std::string& path, std::string_view bytes);

}  // namespace cytra::io
