// NumPy's .npy: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "io/npy.h"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/pixels/plain_writer.h"
#include "io/pixels/raw_voxels.h"
#include "io/weights/pickle.h"

namespace cytra::io {
namespace {

constexpr char kMagic[] = "\x93NUMPY";

[[noreturn]] void fail_npy(const std::string& path, const std::string& what) {
  throw DataError(
      path + ": " + what +
      ", expected a NumPy array of numbers with 2 to 4 dimensions (Y, X; Z, Y, X; or C, "
      "Z, Y, X)");
}

/// The text after 'key': in the header, a Python dictionary.
std::string_view value_of(const std::string& path, const std::string& header, const char* key) {
  for (const char quote : {'\'', '"'}) {
    const std::string name = quote + std::string(key) + quote;
    const std::size_t at = header.find(name);
    if (at == std::string::npos) continue;
    const std::size_t colon = header.find_first_not_of(' ', at + name.size());
    if (colon == std::string::npos || header[colon] != ':') continue;
    const std::size_t begin = header.find_first_not_of(' ', colon + 1);
    if (begin != std::string::npos) return std::string_view(header).substr(begin);
  }
  fail_npy(path, fmt::format("its header has no {}", key));
}

StoredType type_of(const std::string& path, std::string_view text) {
  const std::size_t end = text.empty() ? 0 : text.find(text[0], 1);
  if (text.empty() || (text[0] != '\'' && text[0] != '"') || end == std::string_view::npos)
    fail_npy(path, "its values are records");
  std::string name(text.substr(1, std::min<std::size_t>(end - 1, 20)));
  for (char& letter : name) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  if (name == "|b1") return {'u', 8, false};
  StoredType type;
  if (name.size() == 3 && std::strchr("<>|=", name[0]) != nullptr) {
    type.kind = name[1];
    type.bits = 8 * (name[2] - '0');
    type.is_swapped = name[0] == '>' && type.bits > 8;
  } else {
    type.kind = '?';
  }
  if (!dtype_of(type)) fail_npy(path, "its values have the type '" + name + "'");
  return type;
}

std::vector<int64_t> shape_of(const std::string& path, std::string_view text) {
  const std::size_t end = text.find(')');
  if (text[0] != '(' || end == std::string_view::npos)
    fail_npy(path, "its header has a broken shape");
  std::vector<int64_t> shape;
  for (const std::string& part : split(text.substr(1, end - 1), ',')) {
    const std::string digits = trim(part);
    if (digits.empty()) continue;
    if (digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 15 ||
        shape.size() == 32)
      fail_npy(path, "its header has a broken shape");
    shape.push_back(std::strtoll(digits.c_str(), nullptr, 10));
  }
  return shape;
}

/// What an .npy, or an array in its pickle, says of its values.
struct NpyHeader {
  StoredType type;
  bool is_fortran;
  std::vector<int64_t> shape;
  std::size_t bytes;  // of all that stands there

  NpyHeader(const std::string& path, const InputFile& file) {
    unsigned char head[12] = {};
    file.read_at(0, head, sizeof head);
    if (std::memcmp(head, kMagic, 6) != 0) fail_npy(path, "it does not begin as one");
    const bool is_first = head[6] == 1;  // its header's length has 2 bytes, later ones 4
    if (head[6] < 1 || head[6] > 3)
      fail_npy(path, fmt::format("version {} of the format", head[6]));
    std::size_t length = head[8] | std::size_t{head[9]} << 8;
    if (!is_first) length |= std::size_t{head[10]} << 16 | std::size_t{head[11]} << 24;
    const std::size_t begin = is_first ? 10 : 12;
    if (length > (std::size_t{1} << 20) || begin + length > file.bytes())
      fail_npy(path, "its header is cut off");
    std::string header(length, '\0');
    file.read_at(begin, header.data(), length);
    bytes = begin + length;
    const std::string_view descr = value_of(path, header, "descr");
    const bool is_one = value_of(path, header, "shape").starts_with("()");
    if (is_one && descr.size() > 2 && descr.substr(1, 2) == "|O") {
      take_masks(path, file);
      return;
    }
    type = type_of(path, descr);
    is_fortran = value_of(path, header, "fortran_order").starts_with("True");
    shape = shape_of(path, value_of(path, header, "shape"));
  }

 private:
  /// Takes the array `masks` of Cellpose's NAME_seg.npy: a dictionary, which is pickled. Nothing in
  /// it is run. Source: numpy.ndarray.__reduce__, cellpose.io.masks_flows_to_seg.
  void take_masks(const std::string& path, const InputFile& file) {
    constexpr uint64_t kMostBytes = uint64_t{1} << 28;
    if (file.bytes() - bytes > kMostBytes) fail_npy(path, "it has more than 256 MB of objects");
    std::string pickled(file.bytes() - bytes, '\0');
    file.read_at(bytes, pickled.data(), pickled.size());
    const Pickle pickle = read_pickle(path, pickled);
    using Kind = Pickle::Kind;
    const auto refuse = [&] { fail_npy(path, "it has Python's objects, but no array 'masks'"); };
    const auto node = [&](uint32_t index, Kind kind) -> const Pickle::Node& {
      if (pickle.nodes.at(index).kind != kind) refuse();
      return pickle.nodes[index];
    };
    /// The five parts of an array's state: version, shape, type, whether it is Fortran's, values.
    const auto array = [&](uint32_t index) -> const std::vector<uint32_t>& {
      const auto& parts = node(node(index, Kind::call).state, Kind::tuple).items;
      if (parts.size() != 5) refuse();
      return parts;
    };
    const auto& objects = node(array(pickle.root)[4], Kind::list).items;
    if (objects.size() != 1) refuse();
    const auto& items = node(objects[0], Kind::dict).items;
    std::size_t at = 0;
    while (at < items.size() && pickle.nodes[items[at]].text != "masks") at += 2;
    if (at >= items.size()) refuse();
    const auto& parts = array(items[at + 1]);
    const Pickle::Node& dtype = node(parts[2], Kind::call);
    const auto& names = node(dtype.arguments, Kind::tuple).items;
    const auto& state = node(dtype.state, Kind::tuple).items;
    if (names.empty() || state.size() < 2) refuse();
    const std::string order = node(state[1], Kind::text).text;
    type = type_of(path, "'" + order + node(names[0], Kind::text).text + "'");
    is_fortran = node(parts[3], Kind::boolean).integer != 0;
    for (const uint32_t side : node(parts[1], Kind::tuple).items)
      shape.push_back(node(side, Kind::integer).integer);
    bytes += node(parts[4], Kind::bytes).place;
  }
};

[[noreturn]] void fail_length(const std::string& path, uint64_t found, int64_t expected) {
  throw DataError(
      "{}: {} bytes behind its header, expected {} for its shape; the file may be truncated: copy "
      "or save it again",
      path,
      found,
      expected);
}

std::unique_ptr<ImageReader> open_npy(const std::string& path, const Selection& selection) {
  const InputFile file(path);
  const NpyHeader header(path, file);
  const std::vector<int64_t>& shape = header.shape;
  if (shape.size() < 2 || shape.size() > (selection.axes.empty() ? 4U : 5U))
    fail_npy(path,
             fmt::format("it has {} dimension{}", shape.size(), shape.size() == 1 ? "" : "s"));
  const std::string axes = array_axes(path, selection.axes, shape);
  ImageInfo info;
  RawVoxels voxels;
  voxels.files = {{path, header.bytes}};
  voxels.samples.type = header.type;
  int64_t step = std::ssize(header.type);
  bool fits = true;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = header.is_fortran ? i : shape.size() - 1 - i;
    const std::size_t side = std::string_view("CZYX").find(axes[axis]);
    if (axes[axis] == 'T') {
      info.timepoints = shape[axis];
      voxels.of_time = step;
    } else if (side < 4) {
      info.shape[side] = shape[axis];
      voxels.samples.steps[side] = static_cast<std::ptrdiff_t>(step);
    }
    fits = fits && shape[axis] > 0 && !__builtin_mul_overflow(step, shape[axis], &step);
  }
  info.dtype = dtype_of(header.type).value();
  check_shape(path, info.shape, info.dtype, file.bytes());
  if (!fits || static_cast<uint64_t>(step) > file.bytes() - header.bytes)
    fail_length(path, file.bytes() - header.bytes, step);
  return open_mapped(path, info, voxels, selection);
}

/// A header with these sides: "1, 5, 5".
std::string header_of(Dtype dtype, const std::string& sides) {
  const bool is_float = dtype == Dtype::f32 || dtype == Dtype::f64;
  const bool is_signed = dtype == Dtype::i8 || dtype == Dtype::i16 || dtype == Dtype::i32;
  const std::size_t size = size_of(dtype);
  std::string header = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   size == 1 ? '|' : '<',
                                   is_float    ? 'f'
                                   : is_signed ? 'i'
                                               : 'u',
                                   size,
                                   sides);
  header.resize((10 + header.size()) / 64 * 64 + 64 - 10,
                ' ');  // the pixels begin at a multiple of 64
  header.back() = '\n';
  const std::string magic(kMagic, 6);
  return magic + std::string("\x01\0", 2) + static_cast<char>(header.size()) + '\0' + header;
}

std::unique_ptr<ImageWriter> create_npy(const std::string& path,
                                        const ImageInfo& info,
                                        const OutputOptions&) {
  const auto [c, z, y, x] = info.shape;
  std::string shape = fmt::format("{}, {}", y, x);
  if (c > 1 || z > 1) shape = fmt::format("{}, {}", z, shape);
  if (c > 1) shape = fmt::format("{}, {}", c, shape);
  return std::make_unique<PlainWriter>(path, info, header_of(info.dtype, shape));
}

bool is_npy(const std::string& head, const std::string&) {
  return head.size() >= 10 && head.compare(0, 6, kMagic, 6) == 0;
}

const bool npy_is_known = add_format("npy", [](Format& npy) {
  npy.title = "NumPy";
  npy.rank = 90;
  npy.endings = npy.written_endings = {".npy"};
  npy.media_type = "application/x-npy";
  npy.probe = is_npy;
  npy.open = open_npy;
  npy.create = create_npy;
});

}  // namespace

void write_npy(const std::string& path, const Image& image) {
  write_whole(*create_npy(path, writable_info(image), {}), image);
}

NpyArray read_npy(const std::string& path) {
  InputFile file(path);
  const NpyHeader header(path, file);
  if (header.is_fortran && header.shape.size() > 1)
    throw DataError(path + ": an array in Fortran's order, expected C's");
  NpyArray array{header.shape, {}};
  int64_t count = 1, bytes = std::ssize(header.type);
  bool fits = true;
  for (const int64_t side : array.shape)
    fits = fits && !__builtin_mul_overflow(count, side, &count);
  fits = fits && !__builtin_mul_overflow(count, bytes, &bytes);
  if (!fits || static_cast<uint64_t>(bytes) > file.bytes() - header.bytes)
    fail_length(path, file.bytes() - header.bytes, bytes);
  ImageInfo info;
  info.dtype = dtype_of(header.type).value();
  info.shape = {1, 1, 1, count};
  Samples samples;
  samples.type = header.type;
  samples.offset = static_cast<std::ptrdiff_t>(header.bytes);
  samples.steps = {0, 0, 0, static_cast<std::ptrdiff_t>(header.type.size())};
  file.map();
  array.values = file.read_mapped([&](const unsigned char* data) {
    return read_samples(path, info, samples, data, {0}, within({}, info.shape, path), file.bytes());
  });
  return array;
}

std::string npy_bytes(const std::vector<int64_t>& shape, const Image& values) {
  return header_of(values.dtype, fmt::format("{}", fmt::join(shape, ", "))) +
         std::string(values.pixels.begin(), values.pixels.end());
}

}  // namespace cytra::io
