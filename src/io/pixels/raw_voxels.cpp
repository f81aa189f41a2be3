#include "io/pixels/raw_voxels.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/compression/gzip_writer.h"
#include "io/input_file.h"

namespace cytra::io {
namespace {

using Bytes = std::vector<unsigned char>;

[[noreturn]] void fail_raw(const std::string& path, const std::string& what) {
  throw DataError(path + ": " + what +
                  ", expected all voxels of its header; the file may be truncated or damaged: copy "
                  "or save it again");
}

/// Inflates gzip or zlib from a place in a file; several members may follow each other.
class Inflater {
 public:
  Inflater(const std::string& header, const InputFile& file, uint64_t begin)
      : header_(header), file_(file), at_(begin), input_(std::size_t{1} << 16) {
    if (inflateInit2(&stream_, MAX_WBITS + 32) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater& operator=(Inflater&&) = delete;

  /// Reads bytes; fewer at the end.
  std::size_t read(unsigned char* into, std::size_t count) {
    std::size_t done = 0;
    while (done < count && !is_over_) {
      if (stream_.avail_in == 0 && !fill()) fail_raw(header_, "its compressed data ends too early");
      const std::size_t some = std::min(count - done, std::size_t{1} << 30);
      stream_.next_out = into + done;
      stream_.avail_out = static_cast<uInt>(some);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += some - stream_.avail_out;
      if (result == Z_STREAM_END) {
        is_over_ = (stream_.avail_in == 0 && !fill()) || *stream_.next_in != 0x1f;
        if (!is_over_) inflateReset(&stream_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail_raw(header_, "its compressed data is damaged");
      }
    }
    return done;
  }

 private:
  bool fill() {
    const int64_t got = file_.read_at(at_, input_.data(), input_.size());
    if (got < 0) throw_errno("can't be read", header_, errno);
    at_ += static_cast<uint64_t>(got);
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  const std::string& header_;
  const InputFile& file_;
  uint64_t at_;
  Bytes input_;
  z_stream stream_{};
  bool is_over_ = false;
};

/// Reads a number of the type, of memory's order.
bool put_number(const StoredType& type, const char*& next, const char* end, unsigned char* into) {
  if (next < end && *next == '+') ++next;
  return with_type(type, [&](auto value) {
    if constexpr (std::is_arithmetic_v<decltype(value)>) {
      const auto result = std::from_chars(next, end, value);
      if (result.ec != std::errc()) return false;
      std::memcpy(into, &value, sizeof value);
      next = result.ptr;
      return true;
    }
    return false;  // headers with text name no float16
  });
}

/// Reads voxels that can't be mapped into memory.
class RawSource {
 public:
  RawSource(std::string path, RawVoxels voxels)
      : path_(std::move(path)),
        voxels_(std::move(voxels)),
        file_bytes_(voxels_.bytes / voxels_.files.size()) {}

  /// Reads `count` bytes from `from` on.
  Bytes read(std::size_t from, std::size_t count) const {
    check_memory(path_, "its voxels", static_cast<double>(count));
    Bytes bytes(count);
    for (std::size_t done = 0; done < count;) {
      const std::size_t at = from + done, in_file = at % file_bytes_;
      const std::size_t some = std::min(count - done, file_bytes_ - in_file);
      const RawVoxels::DataFile& data_file = voxels_.files[at / file_bytes_];
      const InputFile file(data_file.path);
      switch (voxels_.packing) {
        case RawVoxels::Packing::none:
          read_plain(file, data_file.begin + in_file, bytes.data() + done, some);
          break;
        case RawVoxels::Packing::deflate:
          read_packed(file, data_file.begin, in_file, bytes.data() + done, some);
          break;
        case RawVoxels::Packing::text:
          read_text(file, data_file.begin, in_file, bytes.data() + done, some);
      }
      done += some;
    }
    return bytes;
  }

 private:
  void read_plain(const InputFile& file,
                  uint64_t at,
                  unsigned char* into,
                  std::size_t count) const {
    const int64_t got = file.read_at(at, into, count);
    if (got < 0) throw_errno("can't be read", path_, errno);
    if (static_cast<std::size_t>(got) != count) fail_raw(path_, "its voxels end too early");
  }

  void read_packed(const InputFile& file,
                   uint64_t begin,
                   std::size_t from,
                   unsigned char* into,
                   std::size_t count) const {
    Inflater inflater(path_, file, begin);
    Bytes rest(std::size_t{1} << 16);
    for (std::size_t left = from + voxels_.skipped; left > 0;) {
      const std::size_t some = std::min(left, rest.size());
      if (inflater.read(rest.data(), some) != some) fail_raw(path_, "no voxels");
      left -= some;
    }
    const std::size_t got = inflater.read(into, count);
    if (got != count) fail_raw(path_, fmt::format("{} of {} bytes of voxels", got, count));
    if (from + count == file_bytes_)
      inflater.read(rest.data(), 1);  // the checksum is after the end
  }

  /// Reads numbers between blanks and commas, from a short file.
  void read_text(const InputFile& file,
                 uint64_t begin,
                 std::size_t from,
                 unsigned char* into,
                 std::size_t count) const {
    std::string text(file.bytes() - std::min(begin, file.bytes()), '\0');
    read_plain(file, begin, reinterpret_cast<unsigned char*>(text.data()), text.size());
    const char *next = text.data(), *end = next + text.size();
    const std::size_t size = voxels_.samples.type.size();
    std::array<unsigned char, 8> ignored{};
    for (std::size_t at = 0; at < from + count; at += size) {
      while (next < end && (std::isspace(static_cast<unsigned char>(*next)) != 0 || *next == ','))
        ++next;
      unsigned char* place = at < from ? ignored.data() : into + (at - from);
      if (!put_number(voxels_.samples.type, next, end, place))
        fail_raw(path_, fmt::format("number {} of its text is none of its type", at / size));
    }
  }

  std::string path_;
  RawVoxels voxels_;
  std::size_t file_bytes_;  // of voxels in each file
};

/// Reads plain voxels in one file.
class MappedVoxels final : public ImageReader {
 public:
  MappedVoxels(const std::string& path,
               const ImageInfo& info,
               const RawVoxels& voxels,
               const Selection& selection)
      : path_(path), file_(voxels.files[0].path), samples_(voxels.samples) {
    info_ = info;
    chosen_ = select(path, selection, info_);
    samples_.offset = static_cast<std::ptrdiff_t>(voxels.files[0].begin) +
                      static_cast<std::ptrdiff_t>(chosen_.timepoint * voxels.of_time);
    file_.map();
  }
  Image read(const Region& region) const override {
    const Region part = within(region, info_.shape, path_);
    return file_.read_mapped(
        [&](const unsigned char* data) {
          return read_samples(path_, info_, samples_, data, chosen_.channels, part, file_.bytes());
        },
        touched_by(part, info_));
  }

 private:
  std::string path_;
  InputFile file_;
  Samples samples_;
  Chosen chosen_;
};

/// Finds where the voxels of plain files begin, and checks that all exist. Returns the bytes of
/// all files.
std::size_t check_files(const std::string& path, RawVoxels& voxels) {
  constexpr uint64_t kMostText = uint64_t{64} << 20;
  const std::size_t count = voxels.files.size();
  if (count == 0 || voxels.bytes % count != 0)
    fail_raw(path, fmt::format("{} files for {} bytes", count, voxels.bytes));
  const std::size_t part = voxels.bytes / count;
  std::size_t all = 0;
  for (RawVoxels::DataFile& one : voxels.files) {
    const std::size_t size = InputFile(one.path).bytes();
    all += size;
    if (voxels.packing == RawVoxels::Packing::text && size > kMostText)
      fail_raw(path, "text of more than 64 MB");
    if (voxels.packing != RawVoxels::Packing::none) continue;
    if (one.is_at_end && size >= part) one.begin = size - part;
    if (one.begin > size || part > size - one.begin) {
      fail_raw(path,
               fmt::format("{} bytes of voxels in {}, where its header says {}",
                           size - std::min<uint64_t>(one.begin, size),
                           printable(std::filesystem::path(one.path).filename().string()),
                           part));
    }
  }
  return all;
}

class RawWriter final : public ImageWriter {
 public:
  RawWriter(const std::string& path, const ImageInfo& info, const RawOutput& output)
      : ImageWriter(path, info) {
    const std::string& data = output.data_path.empty() ? path : output.data_path;
    const std::string& head = output.data_path.empty() ? output.head : "";
    if (!output.data_path.empty()) {
      header_ = std::make_unique<AtomicFile>(path);
      header_->write(output.head);
    }
    if (output.is_gzip) {
      packed_ = std::make_unique<GzipWriter>(data, 1, head);
    } else {
      plain_ = std::make_unique<AtomicFile>(data);
      plain_->write(head);
    }
  }

 private:
  void put(int64_t, const Image& rows) override {
    const auto channels = static_cast<std::size_t>(rows.shape[0]);
    if (channels == 1) return append(rows.pixels.data(), rows.pixels.size());
    const std::size_t size = size_of(rows.dtype), part = rows.pixels.size() / channels;
    Bytes mixed(rows.pixels.size());
    for (std::size_t c = 0; c < channels; ++c) {
      const unsigned char* from = rows.pixels.data() + c * part;
      unsigned char* into = mixed.data() + c * size;
      for (std::size_t at = 0; at < part; at += size, into += size * channels)
        std::memcpy(into, from + at, size);
    }
    append(mixed.data(), mixed.size());
  }
  void append(const void* data, std::size_t bytes) {
    if (packed_) return packed_->write(0, data, bytes);
    plain_->write(data, bytes);
  }
  void close() override {
    if (packed_) packed_->finish();
    if (plain_) plain_->commit();
    if (header_) header_->commit();
  }

  std::unique_ptr<AtomicFile> header_, plain_;
  std::unique_ptr<GzipWriter> packed_;
};

}  // namespace

void set_axes(const std::string& path,
              const std::string& names,
              const std::vector<int64_t>& sizes,
              ImageInfo& info,
              RawVoxels& voxels) {
  auto step = std::ssize(voxels.samples.type);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int64_t size = sizes[i];
    if (names[i] == 'T') {
      info.timepoints = size;
      voxels.of_time = step;
    } else {
      const std::size_t axis = std::string_view("CZYX").find(names[i]);
      info.shape[axis] = size;
      voxels.samples.steps[axis] = static_cast<std::ptrdiff_t>(step);
    }
    if (size < 1 || __builtin_mul_overflow(step, size, &step) || step > INT64_MAX / 4)
      throw DataError("{}: an axis of {} voxels, expected sizes of an image", path, size);
  }
  voxels.bytes = static_cast<std::size_t>(step);
  const std::optional<Dtype> dtype = dtype_of(voxels.samples.type);
  if (!dtype) throw std::logic_error("voxels of an unknown type");
  info.dtype = *dtype;
}

std::unique_ptr<ImageReader> open_mapped(const std::string& path,
                                         const ImageInfo& info,
                                         const RawVoxels& voxels,
                                         const Selection& selection) {
  return std::make_unique<MappedVoxels>(path, info, voxels, selection);
}

std::unique_ptr<ImageReader> open_raw(const std::string& path,
                                      const ImageInfo& info,
                                      const RawVoxels& voxels,
                                      const Selection& selection) {
  RawVoxels all = voxels;
  const std::size_t files = check_files(path, all);
  check_shape(path, info.shape, info.dtype, files);
  if (!is_plausible(all.bytes, files)) fail_raw(path, fmt::format("{} bytes of voxels", all.bytes));
  if (all.packing == RawVoxels::Packing::none && all.files.size() == 1)
    return open_mapped(path, info, all, selection);
  ImageInfo chosen = info;
  const int64_t timepoint = select(path, selection, chosen).timepoint;
  // Contiguous time points are not all unpacked.
  const auto of_time = static_cast<std::size_t>(all.of_time);
  const bool is_outer = of_time * static_cast<std::size_t>(info.timepoints) == all.bytes;
  const std::size_t begin = is_outer ? static_cast<std::size_t>(timepoint) * of_time : 0;
  const std::size_t count = is_outer ? of_time : all.bytes;
  Samples samples = all.samples;
  if (!is_outer) samples.offset = static_cast<std::ptrdiff_t>(timepoint * all.of_time);
  if (all.packing == RawVoxels::Packing::text) samples.type.is_swapped = false;
  std::vector<int64_t> channels;
  for (int64_t c = 0; c < info.shape[0]; ++c) channels.push_back(c);
  const RawSource source(path, all);
  return std::make_unique<WholeReader>(path, info, selection, [=] {
    const Bytes bytes = source.read(begin, count);
    const Region whole{{0, 0, 0}, {info.shape[1], info.shape[2], info.shape[3]}};
    return read_samples(path, info, samples, bytes.data(), channels, whole, files);
  });
}

std::unique_ptr<ImageWriter> create_raw(const std::string& path,
                                        const ImageInfo& info,
                                        const RawOutput& output) {
  return std::make_unique<RawWriter>(path, info, output);
}

}  // namespace cytra::io
