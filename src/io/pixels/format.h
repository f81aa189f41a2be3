#pragma once
// The common code of the formats; not for other code.
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/formats.h"
#include "io/image.h"
#include "io/pixels/stored.h"
#include "io/reader.h"
#include "io/writer.h"

namespace cytra::io {

// Format::probe and Format::open of formats that other formats use.
bool is_tiff(const std::string& head, const std::string& path);
bool is_zarr(const std::string& head, const std::string& path);
Image decode_jpeg2000(const std::string& path, const std::string& bytes);  // whole, in memory
/// Writes all of `image` at once.
void write_whole(ImageWriter& writer, const Image& image);

/// Whether a file of this size can hold so many bytes compressed; up to 64 MiB it is always true.
bool is_plausible_ratio(std::size_t bytes, std::size_t file_bytes);
/// Whether is_plausible_ratio() holds, and the bytes are few enough to be decoded at once.
bool is_plausible(std::size_t bytes, std::size_t file_bytes);
/// Checks sizes and returns the bytes. Throws: DataError when a size is 0 or the whole is not
/// plausible.
std::size_t check_shape(const std::string& path,
                        const std::array<int64_t, 4>& shape,
                        Dtype dtype,
                        std::size_t file_bytes);
/// Throws: MemoryError when `bytes`, more than 64 MiB, are not available; `what` needs them.
void check_memory(const std::string& path, const std::string& what, double bytes);
/// Sets shape and allocates zeroed pixels for a header that claims these sizes, each >= 0.
/// Throws: what check_shape throws; MemoryError when the memory for them, also as float32, is not
/// available.
void allocate(const std::string& path,
              std::array<int64_t, 4> shape,
              std::size_t file_bytes,
              Image& image);

/// The name of each axis before Y and X, the slowest first, by their `sizes`: the names of
/// Selection::axes, with '-' for an omitted axis of size 1; `own` where Selection::axes is empty.
/// Throws: DataError when they name another number of axes.
std::string plane_axes(const std::string& path,
                       const std::string& axes,
                       const std::string& own,
                       const std::vector<int64_t>& sizes);

/// The name of each dimension of an array with 2 to 5 dimensions: "TCZYX" from the end, unless
/// `axes` names them.
std::string array_axes(const std::string& path,
                       const std::string& axes,
                       const std::vector<int64_t>& shape);

/// The micrometres per unit; 0 for a unit we don't know ("pixel").
double micrometres(std::string unit);
double spacing_of(double number, double unit);  // 0 unless it is a length

/// The geometry of axes along the world's, as of OME-Zarr and TIFF: the signed steps along x, y
/// and, for a stack, z, and the first voxel's place (null: unknown), in micrometres to left,
/// posterior, superior, as ITK takes axes without names of sides. A step of 0 is unknown; then so
/// is the place. A negative step alone places the image, too.
Geometry axis_aligned_geometry(const std::vector<double>& steps_um,
                               const std::vector<double>* origin_um);
/// The first voxel's place (x, y, z) in such a format; none where the place is unknown, or axes are
/// oblique, in another order or run the other way, which these formats can't state.
std::optional<std::array<double, 3>> axis_aligned_origin_um(const Geometry& geometry);

/// The geometry of a region, whose first voxel is at another place.
Geometry moved(Geometry geometry, const Region& region);
/// Allocates zeros for the voxels of a region (all sizes set) of the image `info`. Throws: what
/// allocate throws.
Image allocate_part(const std::string& path,
                    const ImageInfo& info,
                    const Region& region,
                    std::size_t file_bytes);

struct Chosen {
  int64_t timepoint = 0;
  std::vector<int64_t> channels;
};
/// Changes `info` of all channels to that of the selected ones.
/// Throws: DataError for a scene, level, time point or channel that `info` does not have.
Chosen select(const std::string& path, const Selection& selection, ImageInfo& info);

/// A reader for formats that decode a whole image at once: it is decoded at the first read() of a
/// part, and kept.
class WholeReader final : public ImageReader {
 public:
  /// Makes the reader. `info`: of all channels. `decode` returns the image that `info` describes;
  /// it is called once, or for every read() of the whole image, perhaps by several threads at
  /// once.
  WholeReader(std::string path,
              const ImageInfo& info,
              const Selection& selection,
              std::function<Image()> decode);
  Image read(const Region& region) const override;

 private:
  Image selected() const;
  std::string path_;
  Chosen chosen_;
  int64_t all_channels_ = 1;
  std::function<Image()> decode_;
  mutable std::once_flag once_;
  mutable std::atomic<bool> is_decoded_{false};
  mutable Image image_;
};

/// Samples at regular distances in memory: value (c, z, y, x) is at data + offset + its indices
/// times `steps`.
struct Samples {
  StoredType type;
  bool is_scaled = false;
  Scale scale;
  std::ptrdiff_t offset = 0;
  std::array<std::ptrdiff_t, 4> steps{};  // in bytes, of C, Z, Y, X
};
/// Reads `region` (every size set) of the channels of a file that `info` describes.
Image read_samples(const std::string& path,
                   const ImageInfo& info,
                   const Samples& samples,
                   const unsigned char* data,
                   const std::vector<int64_t>& channels,
                   const Region& region,
                   std::size_t file_bytes);

/// About the number of bytes that a region touches in a file of contiguous samples.
std::size_t touched_by(const Region& region, const ImageInfo& info);

/// Separates `count` groups of interleaved values of `size` bytes: one value of each group goes to
/// each plane.
void deinterleave(const unsigned char* from,
                  int64_t count,
                  std::size_t size,
                  const std::vector<unsigned char*>& planes);
/// The begin of each channel of an image.
std::vector<unsigned char*> channels_of(Image& image);

/// Checks an image. Throws: std::logic_error unless sizes, pixels and channel names agree.
void check_writable(const Image& image);
/// The description of a whole image for a writer of parts. Throws: what check_writable throws.
ImageInfo writable_info(const Image& image);

}  // namespace cytra::io
