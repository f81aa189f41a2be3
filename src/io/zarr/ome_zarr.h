#pragma once
// OME-NGFF 0.1 to 0.5: images, plates and scenes in the attributes of Zarr groups; for zarr*.cpp
// and image_folder.cpp. Source: https://ngff.openmicroscopy.org/0.4/, .../0.5/
#include <memory>
#include <string>
#include <vector>

#include "io/reader.h"
#include "io/zarr/meta.h"
#include "io/zarr/store.h"

namespace cytra::io {

/// Format::open of OME-Zarr.
std::unique_ptr<ImageReader> open_zarr(const std::string& path, const Selection& selection);

/// A group or array of either Zarr version.
struct ZarrNode {
  std::string key;
  int format = 0;  // 2 or 3; 0: there is none
  bool is_array = false;
  Json json;                            // of an array: .zarray or zarr.json
  Json attributes;                      // of a group: those of OME
  std::string place, attributes_place;  // for messages
};
/// Finds a node. Throws: DataError for damaged metadata, but not for a missing node.
ZarrNode find_zarr_node(ZarrStore& store, const std::string& key);
/// Parses an array's metadata. Throws: DataError unless the node is an array.
ZarrMeta parse_zarr_array(const ZarrStore& store, const ZarrNode& node);

/// Which dimension of an array is which axis; -1: it has none.
struct Axes {
  int t = -1, c = -1, z = -1, y = -1, x = -1;
};
/// The axes by position, where the last five are TCZYX (with four, the first is C). Throws:
/// DataError unless there are 2 to 5.
Axes axes_by_position(std::size_t rank, const std::string& place);
/// The axes by names such as "z"; without y and x when they don't name all dimensions.
Axes axes_by_name(const std::vector<std::string>& names);

struct OmeImage {
  std::size_t rank = 0;  // 0: not known, as in versions before 0.3
  Axes axes;
  struct Level {
    std::string path;  // below the group
    Geometry geometry;
  };
  std::vector<Level> levels;
  std::vector<std::string> channel_names;  // as omero's, or empty
};
/// Parses an image. Its place is known where level 0 has a translation. Without a unit a scale is
/// in micrometres, unless it is 1 at level 0, which means unknown. Throws: DataError.
OmeImage parse_ome_image(const ZarrStore& store, const ZarrNode& group);

/// The groups of the images in a plate (well by well), a well, or bioformats2raw's layout; the
/// group itself when it is an image; else empty. Throws: DataError.
std::vector<std::string> find_ome_scenes(ZarrStore& store, const ZarrNode& group);

}  // namespace cytra::io
