#pragma once
// Whether the chunks of an array lie where its metadata look for them; for zarr*.cpp alone.
#include <string>

#include "io/zarr/meta.h"

namespace cytra::io {

/// For an array of which a region has no chunk. Warns, once per array, when it has none at all: all
/// voxels are its fill value then. Throws: DataError when other files in its folder are named like
/// chunks, with what to write into the metadata where that finds them.
void check_chunk_keys(const ZarrStore& store, const std::string& array, const ZarrMeta& meta);

}  // namespace cytra::io
