#include "io/nifti/nifti.h"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kHeader = 544, kPiece = std::size_t{1} << 24;

[[noreturn]] void fail_truncated(const std::string& path, const std::string& what) {
  throw DataError(path + ": " + what +
                  ", expected all voxels of its header; the file may be truncated or damaged: copy "
                  "or save it again");
}

/// Reads a compressed file from its beginning; an uncompressed file works, too.
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
  GzipFile& operator=(GzipFile&&) = delete;

  /// Reads up to `count` bytes; fewer at the end of the file.
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

/// Continues reading from its place; for earlier places it begins again.
class GzipCursor {
 public:
  explicit GzipCursor(const std::string& path) : path_(path) {}
  uint64_t position() const { return position_; }
  /// Reads bytes; fewer at the end of the file.
  std::size_t read(uint64_t offset, unsigned char* into, std::size_t count) {
    if (file_ == nullptr || offset < position_) {
      file_ = std::make_unique<GzipFile>(path_);
      position_ = 0;
    }
    std::vector<unsigned char> skipped(
        std::min<uint64_t>(offset - position_, std::size_t{1} << 18));
    while (position_ < offset) {
      const std::size_t some = std::min<uint64_t>(offset - position_, skipped.size());
      if (file_->read(skipped.data(), some) != some) return 0;
      position_ += some;
    }
    const std::size_t got = file_->read(into, count);
    position_ += got;
    return got;
  }

 private:
  const std::string& path_;
  std::unique_ptr<GzipFile> file_;
  uint64_t position_ = 0;
};

std::string other_end(const std::string& path, const char* from, const char* to) {
  return path.substr(0, path.size() - std::string(from).size()) + to;
}

/// The path of the pixels: NAME.img for NAME.hdr, or NAME.img.gz; "" for another name.
std::string pixels_of_pair(const std::string& path) {
  for (const auto& [from, to] : {std::pair{".hdr", ".img"}, {".HDR", ".IMG"}}) {
    if (!path.ends_with(from)) continue;
    const std::string pixels = other_end(path, from, to);
    const bool is_packed = !path_exists(pixels) && path_exists(pixels + ".gz");
    return is_packed ? pixels + ".gz" : pixels;
  }
  return "";
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
    is_gzip_ = file_->begin(2) == "\x1f\x8b";

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
      return file_->read_mapped(
          [&](const unsigned char* data) {
            return read_from(data, part, samples_, chosen_.channels);
          },
          touched_by(part, info_));
    }
    const bool is_whole = part.size[0] == info_.shape[1] && part.size[1] == info_.shape[2] &&
                          part.size[2] == info_.shape[3];
    if (is_whole && !is_decoded_)  // not kept: a caller that has the whole image won't ask again
      return read_from(decompress().data(), part, samples_, chosen_.channels);
    if (!is_decoded_ && bytes_ > kKept) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (returns_ < kMostReturns) return read_on(part);
    }
    std::call_once(once_, [this] {
      decoded_ = decompress();
      is_decoded_ = true;
    });
    return read_from(decoded_.data(), part, samples_, chosen_.channels);
  }

 private:
  void find_pixels() {
    pixels_path_ = pixels_of_pair(path_);
    if (!pixels_path_.empty()) return;
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
    unsigned char rest[1 << 12];  // the checksum at the end is only checked there
    file.read(rest, sizeof rest);
    return bytes;
  }

  /// Reads a part of a large file in order: row by row nothing is decompressed twice, or kept.
  /// mutex_ must be held.
  Image read_on(const Region& part) const {
    // Channels at separate places have a cursor each.
    std::vector<int64_t> groups, channels;
    for (const int64_t channel : chosen_.channels) {
      const int64_t group = channel / samples_per_voxel_;
      const auto found = std::ranges::find(groups, group);
      channels.push_back((found - groups.begin()) * samples_per_voxel_ +
                         channel % samples_per_voxel_);
      if (found == groups.end()) groups.push_back(group);
    }
    while (cursors_.size() < groups.size())
      cursors_.push_back(std::make_unique<GzipCursor>(pixels_path_));
    const auto run = static_cast<std::size_t>(part.size[1] * samples_.steps[2]);
    Samples samples = samples_;
    samples.offset = 0;
    samples.steps[1] = static_cast<std::ptrdiff_t>(run);
    samples.steps[0] = samples.steps[1] * part.size[0];
    const std::size_t all = run * static_cast<std::size_t>(part.size[0]) * groups.size();
    check_memory(path_, "a part of its voxels, decompressed,", static_cast<double>(all));
    std::vector<unsigned char> bytes(all);
    unsigned char* into = bytes.data();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (int64_t z = part.begin[0]; z < part.begin[0] + part.size[0]; ++z, into += run) {
        const auto offset = begin_ + static_cast<std::size_t>(
                                         samples_.offset + groups[i] * samples_.steps[0] +
                                         z * samples_.steps[1] + part.begin[1] * samples_.steps[2]);
        returns_ += i == 0 && offset < cursors_[0]->position();
        const std::size_t got = cursors_[i]->read(offset, into, run);
        if (got != run) fail_truncated(path_, fmt::format("{} of {} bytes of rows", got, run));
        unsigned char rest[1];  // as decompress()
        if (offset + run == begin_ + bytes_) cursors_[i]->read(offset + run, rest, sizeof rest);
      }
    }
    Region local = part;
    local.begin[0] = local.begin[1] = 0;
    Image image = read_from(bytes.data(), local, samples, channels);
    image.geometry = moved(info_.geometry, part);
    return image;
  }

  Image read_from(const unsigned char* data,
                  const Region& part,
                  Samples samples,
                  const std::vector<int64_t>& channels) const {
    if (samples_per_voxel_ == 1)
      return read_samples(path_, info_, samples, data, channels, part, memory());
    // The samples of a voxel are contiguous: for read_samples() a channel's step is a byte.
    const std::ptrdiff_t first = samples.offset;
    Image image;
    for (const int64_t channel : channels) {
      samples.offset =
          first + channel / samples_per_voxel_ * samples.steps[0] + channel % samples_per_voxel_;
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
  std::size_t begin_ = 0, bytes_ = 0;  // where the voxels are
  Samples samples_;
  int64_t samples_per_voxel_ = 1;
  Chosen chosen_;
  static constexpr std::size_t kKept = std::size_t{64} << 20;
  static constexpr int kMostReturns = 8;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::vector<std::unique_ptr<GzipCursor>> cursors_;
  mutable int returns_ = 0;  // to rows that had been read
  mutable std::once_flag once_;
  mutable std::atomic<bool> is_decoded_{false};
  mutable std::vector<unsigned char> decoded_;
};

std::vector<std::string> nifti_other_files(const std::string& path) {
  const std::string pixels = pixels_of_pair(path);
  return pixels.empty() ? std::vector<std::string>() : std::vector<std::string>{pixels};
}

std::unique_ptr<ImageReader> open_nifti(const std::string& path, const Selection& selection) {
  return std::make_unique<NiftiImage>(path, selection);
}

const bool nifti_is_known = add_format("nifti", [](Format& nifti) {
  nifti.title = "NIfTI";
  nifti.rank = 30;
  nifti.endings = {".nii", ".nii.gz", ".hdr"};
  nifti.media_type = "application/x-nifti";
  nifti.probe = is_nifti;
  nifti.open = open_nifti;
  nifti.names_own_axes = true;
  nifti.other_files = nifti_other_files;
  nifti.create = create_nifti;
  nifti.written_endings = {".nii", ".nii.gz"};
  nifti.position = Format::Position::direction;
  nifti.output_ending = ".nii.gz";
});

}  // namespace
}  // namespace cytra::io
