#include "io/nifti.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/format.h"
#include "io/input_file.h"

namespace cytra::io {
namespace {

constexpr std::size_t kHeader = 544, kPiece = std::size_t{1} << 24;

[[noreturn]] void fail_truncated(const std::string& path, const std::string& what) {
  throw DataError(path + ": " + what +
                  ", expected all voxels of its header; the file may be truncated or damaged: copy "
                  "or save it again");
}

/// A file that is compressed, from its beginning; one that is not works, too.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : path_(path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw_errno("can't be read", path, errno);
    file_ = gzdopen(descriptor, "rb");
    if (file_ == nullptr) {
      ::close(descriptor);
      throw std::bad_alloc();
    }
    gzbuffer(file_, 1U << 17);
  }
  ~GzipFile() { gzclose_r(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Up to `count` bytes; fewer at the end of the file.
  std::size_t read(unsigned char* into, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const int got =
          gzread(file_, into + done, static_cast<unsigned>(std::min(count - done, kPiece)));
      int error = Z_OK;
      const char* message = gzerror(file_, &error);
      if (got < 0 || (error != Z_OK && error != Z_BUF_ERROR))
        fail_truncated(path_, fmt::format("can't be decompressed ({})", message));
      if (error == Z_BUF_ERROR) fail_truncated(path_, "its compressed data ends too early");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  const std::string& path_;
  gzFile file_ = nullptr;
};

std::string other_end(const std::string& path, const char* from, const char* to) {
  return path.substr(0, path.size() - std::string(from).size()) + to;
}

class NiftiImage final : public ImageReader {
 public:
  NiftiImage(const std::string& path, const Selection& selection)
      : path_(path), pixels_path_(path) {
    std::string head(kHeader, '\0');
    {
      GzipFile file(path_);
      head.resize(file.read(reinterpret_cast<unsigned char*>(head.data()), head.size()));
    }
    const NiftiHeader header = parse_nifti(path, head);
    if (header.is_pair) find_pixels();
    file_ = std::make_unique<InputFile>(pixels_path_);
    char magic[2] = {};
    is_gzip_ = file_->read_at(0, magic, 2) == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';

    const NiftiType type = nifti_type(path, header);
    samples_.type = type.type;
    samples_.scale = {header.slope, header.offset};
    const bool is_slope = std::isfinite(header.slope) && header.slope != 0;
    samples_.is_scaled = is_slope && type.samples == 1 && (header.slope != 1 || header.offset != 0);
    if (samples_.is_scaled && !std::isfinite(header.offset))
      throw DataError(path + ": scl_inter is not finite, expected a number beside scl_slope");
    info_.dtype = samples_.is_scaled ? Dtype::f32 : dtype_of(type.type).value();
    info_.geometry = nifti_geometry(header);
    const auto& dim = header.dim;
    info_.timepoints = dim[4];
    info_.shape = {dim[5] * type.samples, dim[3], dim[2], dim[1]};
    samples_per_voxel_ = type.samples;

    // Files run over x, y, z, t, and the 5th dimension, the fastest first.
    const std::size_t voxel = type.type.size() * static_cast<std::size_t>(type.samples);
    bytes_ = voxel;
    bool fits = true;
    for (std::size_t i = 1; i <= 5; ++i)
      fits = fits && !__builtin_mul_overflow(bytes_, static_cast<std::size_t>(dim[i]), &bytes_);
    fits = fits && bytes_ <= INT64_MAX / 2 && header.pixels_at <= INT64_MAX / 2;
    if (fits) check_shape(path, info_.shape, info_.dtype, file_->bytes());
    begin_ = static_cast<std::size_t>(header.pixels_at);
    if (!fits || (is_gzip_ ? !is_plausible(begin_ + bytes_, file_->bytes())
                           : begin_ + bytes_ > file_->bytes())) {
      fail_truncated(path,
                     fmt::format("{} for {} x {} x {} x {} x {} voxels",
                                 format_bytes(static_cast<double>(file_->bytes())),
                                 dim[1],
                                 dim[2],
                                 dim[3],
                                 dim[4],
                                 dim[5]));
    }
    auto step = static_cast<std::ptrdiff_t>(voxel);
    for (const std::size_t axis : {3, 2, 1}) {
      samples_.steps[axis] = step;
      step *= info_.shape[axis];
    }
    samples_.steps[0] = step * info_.timepoints;
    chosen_ = select(path, selection, info_);
    samples_.offset = step * chosen_.timepoint;
    if (!is_gzip_) {
      samples_.offset += static_cast<std::ptrdiff_t>(begin_);
      file_->map();
    }
  }

  Image read(const Region& region) const override {
    const Region part = within(region, info_.shape, path_);
    if (!is_gzip_) {
      return file_->read_mapped([&](const unsigned char* data) { return read_from(data, part); });
    }
    const bool is_whole = part.size[0] == info_.shape[1] && part.size[1] == info_.shape[2] &&
                          part.size[2] == info_.shape[3];
    if (is_whole && !is_decoded_)  // not kept: who has it all won't ask again
      return read_from(decompress().data(), part);
    std::call_once(once_, [this] {
      decoded_ = decompress();
      is_decoded_ = true;
    });
    return read_from(decoded_.data(), part);
  }

 private:
  void find_pixels() {
    for (const auto& [from, to] : {std::pair{".hdr", ".img"}, {".HDR", ".IMG"}}) {
      if (!ends_with(path_, from)) continue;
      pixels_path_ = other_end(path_, from, to);
      std::error_code ignored;
      if (!std::filesystem::exists(pixels_path_, ignored) &&
          std::filesystem::exists(pixels_path_ + ".gz", ignored))
        pixels_path_ += ".gz";
      return;
    }
    throw DataError(path_ +
                    ": a NIfTI header whose voxels are in another file, expected NAME.hdr "
                    "beside NAME.img");
  }

  std::vector<unsigned char> decompress() const {
    GzipFile file(pixels_path_);
    std::vector<unsigned char> bytes(std::min(begin_, kPiece));
    for (std::size_t left = begin_; left > 0;) {
      const std::size_t some = std::min(left, kPiece);
      if (file.read(bytes.data(), some) != some) fail_truncated(path_, "no voxels");
      left -= some;
    }
    check_memory(path_, "its voxels, decompressed,", static_cast<double>(bytes_));
    bytes.resize(bytes_);
    const std::size_t got = file.read(bytes.data(), bytes_);
    if (got != bytes_) fail_truncated(path_, fmt::format("{} of {} bytes of voxels", got, bytes_));
    unsigned char rest[1 << 12];  // its end holds a checksum, which is looked at only there
    file.read(rest, sizeof rest);
    return bytes;
  }

  Image read_from(const unsigned char* data, const Region& part) const {
    Samples samples = samples_;
    std::vector<int64_t> channels = chosen_.channels;
    if (samples_per_voxel_ == 1)
      return read_samples(path_, info_, samples, data, channels, part, memory());
    // The samples of a voxel lie side by side: to read_samples() a byte is a channel's step.
    Image image;
    for (const int64_t channel : chosen_.channels) {
      samples.offset = samples_.offset + channel / samples_per_voxel_ * samples_.steps[0] +
                       channel % samples_per_voxel_;
      Image one = read_samples(path_, info_, samples, data, {0}, part, memory());
      one.pixels.insert(one.pixels.begin(), image.pixels.begin(), image.pixels.end());
      image = std::move(one);
    }
    image.shape[0] = info_.shape[0];
    return image;
  }
  std::size_t memory() const { return std::max<std::size_t>(file_->bytes(), bytes_ / 2000); }

  std::string path_, pixels_path_;
  std::unique_ptr<InputFile> file_;
  bool is_gzip_ = false;
  std::size_t begin_ = 0, bytes_ = 0;  // of the voxels
  Samples samples_;
  int64_t samples_per_voxel_ = 1;
  Chosen chosen_;
  mutable std::once_flag once_;
  mutable std::atomic<bool> is_decoded_{false};
  mutable std::vector<unsigned char> decoded_;
};

}  // namespace

std::unique_ptr<ImageReader> open_nifti(const std::string& path, const Selection& selection) {
  return std::make_unique<NiftiImage>(path, selection);
}

}  // namespace cytra::io
