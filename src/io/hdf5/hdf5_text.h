#pragma once
// Reads texts of variable length, checking each number, as libhdf5 crashes when they are damaged.
// Source: https://docs.hdfgroup.org/hdf5/v1_14/_f_m_t3.html
#include <cstdint>
#include <optional>
#include <string>

#include "io/input_file.h"

namespace cytra::io {

/// The text that attribute `name` of an object holds, 64 KiB of it at most. `base`: of the file's
/// addresses; `header`: the object's address. None when it can't be found: it is damaged, or
/// outside of the header, where an object has more than 8 attributes in the newer format.
std::optional<std::string> hdf5_text(const InputFile& file,
                                     uint64_t base,
                                     uint64_t header,
                                     const std::string& name);

}  // namespace cytra::io
