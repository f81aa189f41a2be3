#pragma once
// What the formats share; not for others.
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "io/formats.h"
#include "io/image.h"
#include "io/pixels/stored.h"
#include "io/reader.h"
#include "io/writer.h"

namespace cytra::io {

// Of those formats that others look into, too: as Format::probe and Format::open.
bool is_tiff(const std::string& head, const std::string& path);
bool is_zarr(const std::string& head, const std::string& path);
Image decode_jpeg2000(const std::string& path, const std::string& bytes);  // whole, in memory
/// All of `image` at once.
void write_whole(ImageWriter& writer, const Image& image);

/// False for more than 64 MiB that a file of that size could not hold compressed.
bool is_plausible_ratio(std::size_t bytes, std::size_t file_bytes);
/// The same, and false for what is too large to be decoded at once.
bool is_plausible(std::size_t bytes, std::size_t file_bytes);
/// Throws: DataError when a size is 0 or the whole is not plausible. Returns the bytes.
std::size_t check_shape(const std::string& path,
                        const std::array<int64_t, 4>& shape,
                        Dtype dtype,
                        std::size_t file_bytes);
/// Throws: MemoryError when `bytes`, more than 64 MiB, are not at hand; `what` takes them.
void check_memory(const std::string& path, const std::string& what, double bytes);
/// Sets shape and allocates zeroed pixels for a header that claims these sizes, each >= 0.
/// Throws: as check_shape; MemoryError when they and their values as float32 are not at hand.
void allocate(const std::string& path,
              std::array<int64_t, 4> shape,
              std::size_t file_bytes,
              Image& image);

/// The name of each axis in front of Y and X, the slowest first, by their `sizes`: those that
/// Selection::axes gives, '-' for one of size 1 that they leave out; `own` where they are empty.
/// Throws: DataError when they name another number of axes.
std::string plane_axes(const std::string& path,
                       const std::string& axes,
                       const std::string& own,
                       const std::vector<int64_t>& sizes);

/// Of an array of 2 to 5 dimensions: the name of each, "TCZYX" from the end unless `axes` say.
std::string array_axes(const std::string& path,
                       const std::string& axes,
                       const std::vector<int64_t>& shape);

/// Micrometres per unit; 0 for a unit we don't know ("pixel").
double micrometres(std::string unit);
double spacing_of(double number, double unit);  // 0 unless it is a length

/// The geometry of a region: its first voxel lies elsewhere.
Geometry moved(Geometry geometry, const Region& region);
/// For the voxels of a region, all sizes set, of what `info` describes: zeros. Throws: as allocate.
Image allocate_part(const std::string& path,
                    const ImageInfo& info,
                    const Region& region,
                    std::size_t file_bytes);

struct Chosen {
  int64_t timepoint = 0;
  std::vector<int64_t> channels;
};
/// Takes `info` of all channels to that of the selected ones.
/// Throws: DataError for a scene, level, time point or channel that `info` does not have.
Chosen select(const std::string& path, const Selection& selection, ImageInfo& info);

/// For a format that decodes a whole image at once: at the first read() of a part, and kept.
class WholeReader final : public ImageReader {
 public:
  /// `info`: of all channels. `decode` gives the image that it describes; called once, or for every
  /// read() of the whole image, maybe by several threads at once.
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
/// `region` (every size set) of the channels of a file that `info` describes.
Image read_samples(const std::string& path,
                   const ImageInfo& info,
                   const Samples& samples,
                   const unsigned char* data,
                   const std::vector<int64_t>& channels,
                   const Region& region,
                   std::size_t file_bytes);

/// About the bytes of a file that holds them side by side.
std::size_t touched_by(const Region& region, const ImageInfo& info);

/// Takes `count` groups of interleaved values of `size` bytes apart: one value of each goes to each
/// plane.
void deinterleave(const unsigned char* from,
                  int64_t count,
                  std::size_t size,
                  const std::vector<unsigned char*>& planes);
/// Where each channel of an image begins.
std::vector<unsigned char*> channels_of(Image& image);

/// Throws std::logic_error unless sizes, pixels and channel names agree.
void check_writable(const Image& image);
/// What a writer of parts is told of a whole image. Throws: as check_writable.
ImageInfo writable_info(const Image& image);

}  // namespace cytra::io
