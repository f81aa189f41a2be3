#pragma once
#include "io/zarr/meta.h"

namespace cytra::io {

/// Makes .zarray and zarr.json, for the codecs that we write.
Json zarr_v2_json(const ZarrMeta& meta);
Json zarr_v3_json(const ZarrMeta& meta);

}  // namespace cytra::io
