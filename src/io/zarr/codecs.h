#pragma once
// The compressions of Zarr, as numcodecs writes them; for zarr*.cpp only.
#include <string>
#include <vector>

#include "io/zarr/meta.h"

namespace cytra::io {

/// Undoes `codecs`, the last one first. Throws: DataError `place: ...` unless that gives exactly
/// `expected` bytes; never allocates much more.
Buffer decode(Buffer bytes,
              const std::vector<ByteCodec>& codecs,
              std::size_t expected,
              const std::string& place);
/// Undoes `codecs` where the number of bytes is unknown, up to `most`.
Buffer decode_at_most(Buffer bytes,
                      const std::vector<ByteCodec>& codecs,
                      std::size_t most,
                      const std::string& place);
/// Applies `codecs`: gzip, zstd, blosc and crc32c.
Buffer encode(Buffer bytes, const std::vector<ByteCodec>& codecs);

}  // namespace cytra::io
