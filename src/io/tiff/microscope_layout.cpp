// Part of io/tiff/layout.h: layouts in private tags of microscopes. Sources: tifffile's
// _series_lsm and _series_stk; Zeiss's "LSM 5/7/8 image file format"; MetaMorph's "Stack (STK)
// Image File Format".
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "io/pixels/format.h"
#include "io/tiff/layout.h"

namespace cytra::io {
namespace {

constexpr uint16_t kLsmInfo = 34412, kUic1 = 33628, kUic2 = 33629;

template <class T>
T at(const std::string& bytes, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= bytes.size())
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

[[noreturn]] void refuse_format(const TiffFile& file, const char* format, const std::string& what) {
  throw DataError("{}: {} {}, expected what its microscope's software writes; save it as OME-TIFF",
                  file.path(),
                  format,
                  what);
}

std::string read_file_bytes(const TiffFile& file, uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  const int64_t got = file.file().read_at(offset, bytes.data(), size);
  bytes.resize(static_cast<std::size_t>(std::max<int64_t>(got, 0)));
  return bytes;
}

double fraction(const std::string& bytes, std::size_t offset) {
  const auto below = at<uint32_t>(bytes, offset + 4);
  return below == 0 ? 0 : double{1} * at<uint32_t>(bytes, offset) / below;
}

/// The pixel size of a calibrated STK; else 0.
std::array<double, 2> stk_pixel_size(const TiffFile& file, double& unit) {
  const auto tag = file.private_tag(kUic1);
  if (!tag || tag->type != TIFF_LONG || tag->count > 4096) return {0, 0};
  const std::string ids = read_file_bytes(file, tag->at, 8 * static_cast<std::size_t>(tag->count));
  bool is_calibrated = false;
  std::array<double, 2> sizes{};
  for (std::size_t i = 0; i + 8 <= ids.size(); i += 8) {
    const auto id = at<uint32_t>(ids, i), value = at<uint32_t>(ids, i + 4);
    if (id == 3) is_calibrated = value != 0;
    if (id == 4) sizes[1] = fraction(read_file_bytes(file, value, 8), 0);  // x
    if (id == 5) sizes[0] = fraction(read_file_bytes(file, value, 8), 0);
    if (id == 6) {  // a text with its length in front
      const std::string text = read_file_bytes(file, value, 36);
      const auto length = std::min<std::size_t>(at<uint32_t>(text, 0), 32);
      unit = micrometres(text.substr(std::min<std::size_t>(4, text.size()), length).c_str());
    }
  }
  return is_calibrated ? sizes : std::array<double, 2>{};
}

}  // namespace

bool lsm_layout(const TiffFile& file,
                const PageIndices& pages,
                const Selection& selection,
                TiffLayout& layout) {
  const auto tag = file.private_tag(kLsmInfo);
  if (!tag) return false;
  std::string info = read_file_bytes(file, tag->at, 272);
  const auto magic = at<uint32_t>(info, 0);
  if (file.is_swapped() || (magic != 50350412 && magic != 67127628))
    refuse_format(file, "LSM", "without its description");
  if (file.bytes() > UINT32_MAX) refuse_format(file, "LSM", "of more than 4 GB");
  info.resize(std::min<std::size_t>(info.size(), at<uint32_t>(info, 4)));
  const int64_t slices = at<int32_t>(info, 16), times = at<int32_t>(info, 24);
  const int64_t positions =
      std::max<int64_t>(1, at<int32_t>(info, 264)) * std::max<int64_t>(1, at<int32_t>(info, 268));
  std::vector<TiffAxis> axes;
  switch (at<uint16_t>(info, 88)) {
    case 0:  // stack
      axes = {{'Z', slices}};
      break;
    case 3:  // planes over time; x-z planes, too
    case 4:
    case 9:
      axes = {{'T', times}};
      break;
    case 6:  // stacks over time
    case 7:
      axes = {{'T', times}, {'Z', slices}};
      break;
    default:  // x-z planes and lines over time are one page
      break;
  }
  const auto per_position = std::ssize(pages) / positions;
  if (per_position * positions != std::ssize(pages))
    refuse_format(file, "LSM", fmt::format("of {} positions in {} pages", positions, pages.size()));
  check_scene(file.path(), selection.scene, static_cast<std::size_t>(positions));
  layout.scenes = positions;
  place(file.path(), named(file.path(), selection.axes, axes), per_position, layout);
  if (std::ssize(layout.pages) != per_position) {
    refuse_format(
        file,
        "LSM",
        fmt::format("that describes {} of its {} pages", layout.pages.size(), per_position));
  }
  const auto first = pages.begin() + selection.scene * per_position;
  map_to(PageIndices(first, first + per_position), layout);
  for (std::size_t i = 0; i < 3; ++i)  // x, y, z in metres
    layout.geometry.spacing_um[2 - i] = spacing_of(at<double>(info, 40 + 8 * i), 1e6);
  return true;
}

bool stk_layout(const TiffFile& file, const Selection& selection, TiffLayout& layout) {
  const auto tag = file.private_tag(kUic2);
  if (!tag || !file.private_tag(kUic1)) return false;
  const auto& page = file.pages()[0];
  if (file.is_swapped() || file.pages().size() > 1 || tag->count < 1 || tag->count > INT32_MAX ||
      !fits(page, static_cast<int64_t>(tag->count), file.bytes())) {
    refuse_format(
        file, "MetaMorph STK", fmt::format("of {} planes that are not all there", tag->count));
  }
  check_scene(file.path(), selection.scene, 1);
  const auto planes = static_cast<int64_t>(tag->count);
  const std::string table = read_file_bytes(file, tag->at, 24 * static_cast<std::size_t>(planes));
  if (table.size() != 24 * static_cast<std::size_t>(planes))
    refuse_format(file, "MetaMorph STK", "whose table of planes is cut off");
  bool is_deep = true, is_timed = true;
  for (int64_t i = 0; i < planes; ++i) {
    const auto row = static_cast<std::size_t>(i) * 24;
    is_deep = is_deep && at<uint32_t>(table, row) != 0;
    is_timed =
        is_timed && (i == 0 || at<uint32_t>(table, row + 12) != at<uint32_t>(table, row - 12));
  }
  layout.is_contiguous = planes > 1;
  place(file.path(),
        named(file.path(), selection.axes, {{!is_deep && is_timed ? 'T' : 'Z', planes}}),
        planes,
        layout);
  double unit = 0;
  const std::array<double, 2> size = stk_pixel_size(file, unit);
  if (size[0] > 0 && size[1] > 0)
    layout.geometry.spacing_um = {
        spacing_of(fraction(table, 0), unit), spacing_of(size[0], unit), spacing_of(size[1], unit)};
  return true;
}

}  // namespace cytra::io
