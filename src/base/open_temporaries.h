#pragma once

namespace cytra {

/// Before an exit from the midst of work: removes what AtomicFile has open in this process, with
/// its temporary folders.
void remove_open_temporaries();

}  // namespace cytra
