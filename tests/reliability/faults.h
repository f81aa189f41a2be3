#pragma once
// System calls of this process that touch one folder: counted, written down, and made to fail.
// This program defines open(), write() and others itself; the libraries it is linked with call
// those.
#include <string>
#include <vector>

namespace cytra::test {

enum class Fault {
  none,
  eio,
  enospc,
  eintr,        // once
  short_write,  // half of the bytes; calls other than write() succeed
  exit_before,  // the process ends at this call
  exit_half,    // ... after half of a write()
};

/// What changed in the folder. Names are without it.
struct Event {
  enum class Op { create, write, sync, sync_folder, rename, link, unlink, saved } op;
  std::string name, to;
  int file = 0;      // number of the open file, for write and sync
  std::string data;  // of write
};

/// From now on: calls that touch `folder` are counted from 1, and `fault` befalls the `at`-th.
void watch_calls(const std::string& folder, Fault fault = Fault::none, int at = 0);
/// How many there were; ends watching.
int end_watching();
/// Events since the start of watching.
std::vector<Event>& events();

}  // namespace cytra::test
