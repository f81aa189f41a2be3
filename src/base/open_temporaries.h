#pragma once
// The temporaries of AtomicFile in this process that are not committed yet.
#include <string>

namespace cytra {

void add_open_temporary(const std::string& path);
void drop_open_temporary(const std::string& path);
/// Removes them, with their temporary folders, before an exit in the middle of work.
void remove_open_temporaries();

}  // namespace cytra
