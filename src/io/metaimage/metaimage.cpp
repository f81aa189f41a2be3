// MetaImage: https://itk.org/Wiki/MetaIO/Documentation. Where it is not definite, we do as ITK.
#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/pixels/raw_voxels.h"

namespace cytra::io {
namespace {

[[noreturn]] void fail_meta(const std::string& path, const std::string& what) {
  throw DataError(
      path + ": the MetaImage " + what +
      ", expected a complete header of 2 to 4 dimensions (x, y, z, time) that ends with "
      "ElementDataFile; the file may be damaged");
}

/// The end of the header, after its last line ElementDataFile; 0: not found yet.
std::size_t end_of_meta_header(const std::string& text) {
  constexpr std::string_view kLast = "ElementDataFile";
  std::size_t at = text.starts_with(kLast) ? 0 : text.find("\n" + std::string(kLast));
  if (at == std::string::npos) return 0;
  at = text.find('\n', at + 1);
  return at == std::string::npos ? 0 : at + 1;
}

struct MetaHeader {
  std::map<std::string, std::string> fields;
  std::vector<std::string> lines;  // lines after the header, of files that a list names
  uint64_t end = 0;
  /// The value of the first existing name; "" for none.
  std::string value(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      const auto found = fields.find(name);
      if (found != fields.end()) return found->second;
    }
    return "";
  }
  bool is_true(std::initializer_list<const char*> names, bool if_missing = false) const {
    const std::string text = value(names);
    return text.empty() ? if_missing : text[0] == 'T' || text[0] == 't' || text[0] == '1';
  }
};

MetaHeader parse_meta(const std::string& path) {
  std::string text =
      read_text_header(path, [](const std::string& head) { return end_of_meta_header(head) > 0; });
  MetaHeader header;
  const std::size_t bytes = text.size();
  if (end_of_meta_header(text) == 0) text += '\n';  // the file's last line may lack it
  header.end = std::min(end_of_meta_header(text), bytes);
  if (header.end == 0) fail_meta(path, "has no ElementDataFile");
  for (const std::string& line : split(text.substr(0, header.end), '\n')) {
    const std::size_t sign = line.find_first_of("=:");
    if (sign == std::string::npos) {
      if (!trim(line).empty()) fail_meta(path, "has the line '" + printable(line, 40) + "'");
      continue;
    }
    header.fields[trim(line.substr(0, sign))] = trim(line.substr(sign + 1));
  }
  if (!header.value({"ElementDataFile"}).starts_with("LIST")) return header;
  const std::string all = read_text_header(path, [](const std::string&) { return false; });
  const std::size_t begin = std::min<std::size_t>(header.end, all.size());
  for (const std::string& line : split(std::string_view(all).substr(begin), '\n')) {
    if (!trim(line).empty()) header.lines.push_back(trim(line));
  }
  return header;
}

StoredType meta_type(const std::string& path, const MetaHeader& header) {
  static const std::map<std::string, StoredType> kTypes = {{"MET_CHAR", {'i', 8}},
                                                           {"MET_UCHAR", {'u', 8}},
                                                           {"MET_SHORT", {'i', 16}},
                                                           {"MET_USHORT", {'u', 16}},
                                                           {"MET_INT", {'i', 32}},
                                                           {"MET_UINT", {'u', 32}},
                                                           {"MET_LONG", {'i', 32}},
                                                           {"MET_ULONG", {'u', 32}},
                                                           {"MET_LONG_LONG", {'i', 64}},
                                                           {"MET_ULONG_LONG", {'u', 64}},
                                                           {"MET_FLOAT", {'f', 32}},
                                                           {"MET_DOUBLE", {'f', 64}}};
  std::string name = header.value({"ElementType"});
  if (name.ends_with("_ARRAY")) name.resize(name.size() - 6);
  const auto found = kTypes.find(name);
  if (found == kTypes.end())
    fail_meta(path, "has elements of the type '" + printable(name, 20) + "'");
  StoredType type = found->second;
  type.is_swapped =
      type.bits > 8 && header.is_true({"ElementByteOrderMSB", "BinaryDataByteOrderMSB"});
  return type;
}

Geometry meta_geometry(const std::string& path, const MetaHeader& header, std::size_t dimensions) {
  const std::string unit = header.value({"DistanceUnits"});
  const double mm = micrometres(unit) > 0 ? micrometres(unit) / 1000 : 1;
  const auto numbers = [&](std::initializer_list<const char*> names, std::size_t count) {
    const std::vector<double> found = real_numbers(path, *names.begin(), header.value(names));
    if (!found.empty() && found.size() != count)
      fail_meta(path, fmt::format("has {} numbers of {}", found.size(), *names.begin()));
    return found;
  };
  std::vector<double> spacing = numbers({"ElementSpacing", "ElementSize"}, dimensions);
  const auto matrix =
      numbers({"TransformMatrix", "Rotation", "Orientation"}, dimensions * dimensions);
  const auto offset = numbers({"Origin", "Offset", "Position"}, dimensions);
  const std::size_t space = std::min<std::size_t>(dimensions, 3);
  // A negative distance turns its axis round.
  const bool is_turned = std::ranges::any_of(spacing, [](double distance) { return distance < 0; });
  for (double& distance : spacing) distance *= mm;
  if (matrix.empty() && offset.empty() && !is_turned)
    return spaced_geometry({spacing.begin(), spacing.begin() + (spacing.empty() ? 0 : space)});
  if (spacing.empty()) spacing.assign(dimensions, mm);
  // The order is left, posterior, superior. A row of the matrix is the direction of an axis.
  constexpr double kSigns[] = {-1, -1, 1};
  std::vector<WorldVector> steps(space);
  WorldVector origin{};
  for (std::size_t i = 0; i < space; ++i) {
    for (std::size_t side = 0; side < space; ++side) {
      const double cosine = matrix.empty() ? (i == side ? 1 : 0) : matrix[i * dimensions + side];
      steps[i][side] = kSigns[side] * cosine * spacing[i];
    }
    origin[i] = offset.empty() ? 0 : kSigns[i] * offset[i] * mm;
  }
  return placed_geometry(steps, origin);
}

/// The files of the voxels, as the header names them; empty: the voxels follow the header.
std::vector<std::string> meta_files(const std::string& path,
                                    const MetaHeader& header,
                                    const std::vector<int64_t>& sizes) {
  const std::string place = header.value({"ElementDataFile"});
  if (place == "LOCAL" || place == "Local" || place == "local") return {};
  if (place.starts_with("LIST")) return header.lines;
  if (place.find('%') == std::string::npos) return {place};
  return numbered_names(path, place, sizes.back());
}

void find_meta_voxels(const std::string& path,
                      const MetaHeader& header,
                      const std::vector<int64_t>& sizes,
                      RawVoxels& voxels) {
  const bool is_text = !header.is_true({"BinaryData"}, true);
  const bool is_packed = header.is_true({"CompressedData"});
  if (is_packed && is_text) fail_meta(path, "is compressed text");
  voxels.packing = is_packed ? RawVoxels::Packing::deflate
                   : is_text ? RawVoxels::Packing::text
                             : RawVoxels::Packing::none;
  const std::vector<int64_t> skip = whole_numbers(path, "HeaderSize", header.value({"HeaderSize"}));
  const int64_t begin = skip.empty() ? 0 : skip[0];
  if (begin < -1 || (begin == -1 && voxels.packing != RawVoxels::Packing::none))
    fail_meta(path, fmt::format("has a HeaderSize of {}", begin));
  const auto add = [&](const std::string& file, uint64_t first) {
    voxels.files.push_back({file, begin > 0 ? static_cast<uint64_t>(begin) : first, begin == -1});
  };
  const std::vector<std::string> names = meta_files(path, header, sizes);
  for (const std::string& name : names) add(find_file(path, name), 0);
  const bool is_list = header.value({"ElementDataFile"}).starts_with("LIST");
  if (names.empty() && !is_list) add(path, header.end);
}

/// Whether a text has a header's keys at the begin of lines. Keys may come in any order after the
/// first, so that under another ending a file must begin with one that writers begin with.
bool is_meta(const std::string& head, const std::string& path) {
  if (head.find('\0') < head.find("ElementDataFile")) return false;
  const std::string name = in_small_letters(path);
  const bool is_named = name.ends_with(".mha") || name.ends_with(".mhd");
  for (const std::string& line : split(head, '\n')) {
    const std::size_t sign = line.find_first_of("=:");
    const std::string key = trim(line.substr(0, sign));
    for (const char* known : {"ObjectType", "ObjectSubType", "NDims", "Comment", "TransformType"}) {
      if (sign != std::string::npos && key == known)
        return head.find("NDims") != std::string::npos || head.find("Image") != std::string::npos;
    }
    if (!is_named && !key.empty()) return false;
  }
  return false;
}

std::vector<int64_t> meta_sizes(const std::string& path, const MetaHeader& header) {
  const std::vector<int64_t> count = whole_numbers(path, "NDims", header.value({"NDims"}));
  std::vector<int64_t> sizes = whole_numbers(path, "DimSize", header.value({"DimSize"}));
  if (sizes.size() < 2 || sizes.size() > 4 || count.size() != 1 || count[0] != std::ssize(sizes))
    fail_meta(path, fmt::format("has {} sizes", sizes.size()));
  return sizes;
}

std::unique_ptr<ImageReader> open_meta(const std::string& path, const Selection& selection) {
  const MetaHeader header = parse_meta(path);
  const std::string kind = header.value({"ObjectType"});
  if (!kind.empty() && kind != "Image")
    fail_meta(path, "is of the type '" + printable(kind, 20) + "'");
  RawVoxels voxels;
  ImageInfo info;
  voxels.samples.type = meta_type(path, header);
  std::vector<int64_t> sizes = meta_sizes(path, header);
  info.geometry = meta_geometry(path, header, sizes.size());
  find_meta_voxels(path, header, sizes, voxels);
  const std::vector<int64_t> channels =
      whole_numbers(path, "ElementNumberOfChannels", header.value({"ElementNumberOfChannels"}));
  sizes.insert(sizes.begin(), channels.empty() ? 1 : channels[0]);
  set_axes(path, std::string("CXYZT").substr(0, sizes.size()), sizes, info, voxels);
  return open_raw(path, info, voxels, selection);
}

std::vector<std::string> meta_other_files(const std::string& path) {
  const MetaHeader header = parse_meta(path);
  return mapped(meta_files(path, header, meta_sizes(path, header)),
                [&](const std::string& name) { return named_file(path, name); });
}

std::string meta_place(const ImageInfo& info) {
  const LpsGeometry place = lps_geometry(info);
  const std::size_t count = place.dimensions;
  const auto first = place.spacing.begin(), last = first + static_cast<std::ptrdiff_t>(count);
  std::string text;
  if (place.is_placed) {
    std::vector<double> matrix;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t side = 0; side < count; ++side)
        matrix.push_back(place.steps[i][side] / place.spacing[i]);
    }
    text = fmt::format("TransformMatrix = {}\nOffset = {}\n",
                       fmt::join(matrix, " "),
                       fmt::join(place.origin.begin(), place.origin.begin() + count, " "));
  }
  // The format can't state an unknown distance; 1 would be wrong.
  if (std::all_of(first, last, [](double distance) { return distance > 0; }))
    text += fmt::format("ElementSpacing = {}\n", fmt::join(first, last, " "));
  return text;
}

std::unique_ptr<ImageWriter> create_meta(const std::string& path,
                                         const ImageInfo& info,
                                         const OutputOptions&) {
  constexpr const char* kNames[] = {
      "UCHAR", "CHAR", "USHORT", "SHORT", "UINT", "INT", "FLOAT", "DOUBLE"};
  const auto [c, z, y, x] = info.shape;
  const bool is_plane = lps_geometry(info).dimensions == 2;
  RawOutput output;
  const std::filesystem::path file(path);
  if (in_small_letters(file.extension().string()) == ".mhd")
    output.data_path = path.substr(0, path.size() - 4) + ".raw";
  output.head = fmt::format(
      "ObjectType = Image\nNDims = {}\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
      "CompressedData = False\n{}DimSize = {} {}{}\n{}ElementType = MET_{}\nElementDataFile = {}\n",
      is_plane ? 2 : 3,
      meta_place(info),
      x,
      y,
      is_plane ? "" : fmt::format(" {}", z),
      c > 1 ? fmt::format("ElementNumberOfChannels = {}\n", c) : "",
      kNames[static_cast<std::size_t>(info.dtype)],
      output.data_path.empty() ? "LOCAL"
                               : std::filesystem::path(output.data_path).filename().string());
  return create_raw(path, info, output);
}

const bool metaimage_is_known = add_format("metaimage", [](Format& meta) {
  meta.title = "MetaImage";
  meta.rank = 34;
  meta.endings = meta.written_endings = {".mha", ".mhd"};
  meta.media_type = "application/x-metaimage";
  meta.probe = is_meta;
  meta.open = open_meta;
  meta.names_own_axes = true;
  meta.other_files = meta_other_files;
  meta.create = create_meta;
  meta.position = Format::Position::direction;
});

}  // namespace
}  // namespace cytra::io
