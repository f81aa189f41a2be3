#pragma once
// What AtomicFile has open in this process, not committed yet.
#include <string>

namespace cytra {

void add_open_temporary(const std::string& path);
void drop_open_temporary(const std::string& path);
/// Before an exit from the midst of work: removes them, with their temporary folders.
void remove_open_temporaries();

}  // namespace cytra
