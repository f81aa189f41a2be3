#pragma once
// Writes OME-Zarr images whole, or part by part.
#include <array>
#include <memory>
#include <string>

#include "io/image.h"
#include "io/reader.h"

namespace cytra::io {

struct ZarrOptions {
  /// The version: 0.4 is Zarr 2, which most programs read; 0.5 is Zarr 3.
  enum class Version { v0_4, v0_5 } version = Version::v0_4;
  enum class Compressor { none, gzip, zstd, blosc } compressor = Compressor::blosc;
  /// The size C, Z, Y, X of a chunk; 0: one channel, and 64^3 of an isotropic stack, else planes:
  /// 512^2 of a 2D image, several of 256^2 of a stack, 1 MB at most.
  std::array<int64_t, 4> chunk{0, 0, 0, 0};
  /// The size C, Z, Y, X of a file of many chunks, rounded up to whole ones (only 0.5); 0: one
  /// chunk.
  std::array<int64_t, 4> shard{0, 0, 0, 0};
  /// The most levels, 1 to 30; 0: until Y and X are at most 256. Each level halves Y
  /// and X, and Z while its spacing is that of X.
  int64_t levels = 0;
  /// Whether levels take the nearest voxel instead of the mean.
  bool is_labels = false;
  /// The name of labels: writes PATH/labels/NAME, labels of the image PATH, in that image's
  /// version.
  std::string labels;
};

/// The chunk that ZarrOptions::chunk of 0 stands for.
std::array<int64_t, 4> usual_chunk(const ImageInfo& info);

/// Writes an image part by part: regions in any order that don't overlap; voxels that are never
/// written are 0. Chunks are compressed and put on the disk when they are complete; parts of
/// incomplete ones stay in memory, so regions that are multiples of chunks need the least. The
/// image appears at `path` by finish(); without that nothing appears. Thread: write() may be
/// called by several threads.
class ZarrWriter {
 public:
  /// Begins an image. Type, shape, time points, geometry and channel names of `info` are used.
  /// Replaces a Zarr image at `path`. Throws: ConfigError (options; `path` is something else, or
  /// can't be written), DataError (the image that labels belong to is none, or has another size).
  ZarrWriter(const std::string& path, const ImageInfo& info, const ZarrOptions& options = {});
  ~ZarrWriter();
  ZarrWriter& operator=(ZarrWriter&&) = delete;
  /// Writes all channels of a region. Throws: DataError (not within the image), IoError;
  /// std::logic_error for another type or size, or a voxel that is written twice.
  void write(const Region& region, const Image& pixels, int64_t timepoint = 0);
  /// Makes the smaller levels and the metadata, and puts everything in place. Throws: what
  /// AtomicFile throws.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes a whole image. Throws: what ZarrWriter throws.
void write_ome_zarr(const std::string& path, const Image& image, const ZarrOptions& options = {});

}  // namespace cytra::io
