#pragma once
// Checks whether the chunks of an array are where its metadata say; for zarr*.cpp only.
#include <string>

#include "io/zarr/meta.h"

namespace cytra::io {

/// Checks an array of which a region has no chunk. Warns, once per array, when it has none at all:
/// all voxels are then its fill value. Throws: DataError when other files in its folder are named
/// like chunks, with a change of the metadata by which they are found.
void check_chunk_keys(const ZarrStore& store, const std::string& array, const ZarrMeta& meta);

}  // namespace cytra::io
