// NRRD: https://teem.sourceforge.net/nrrd/format.html. Where it is not definite, we do as ITK.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/pixels/raw_voxels.h"

namespace cytra::io {
namespace {

[[noreturn]] void fail_nrrd(const std::string& path, const std::string& what) {
  throw DataError(
      path + ": the NRRD " + what +
      ", expected a complete header of 2 to 4 axes (x, y, z, time) and one of channels; "
      "the file may be damaged");
}

/// The begin and the end of the empty line that ends a header; both 0: not found yet.
std::pair<std::size_t, std::size_t> end_of_nrrd_header(const std::string& text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    std::size_t next = at + 1;
    if (next < text.size() && text[next] == '\r') ++next;
    if (next < text.size() && text[next] == '\n') return {at + 1, next + 1};
  }
  return {0, 0};
}

struct NrrdHeader {
  std::map<std::string, std::string> fields;
  std::vector<std::string> files;  // "data file: LIST" names them
  uint64_t end = 0;
  std::string value(const char* name) const {  // "" for none
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
  }
};

/// The one name of fields that have two: "datafile" is "data file".
std::string nrrd_field(std::string name) {
  name = in_small_letters(trim(name));
  for (const char* spaced : {"data file", "line skip", "byte skip", "axis mins"}) {
    std::string joined = spaced;
    joined.erase(joined.find(' '), 1);
    if (name == joined) return spaced;
  }
  return name;
}

NrrdHeader parse_nrrd(const std::string& path) {
  const std::string text = read_text_header(
      path, [](const std::string& head) { return end_of_nrrd_header(head).second > 0; });
  const auto [end, data] = end_of_nrrd_header(text);
  NrrdHeader header;
  header.end = data == 0 ? text.size() : data;
  bool is_list = false;
  const std::vector<std::string> lines = split(text.substr(0, data == 0 ? text.size() : end), '\n');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string line = trim(lines[i]);
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": "), key = line.find(":=");
    if (is_list) {
      header.files.push_back(line);
    } else if (key != std::string::npos && (colon == std::string::npos || key < colon)) {
      continue;  // a key of the writer's own
    } else if (colon == std::string::npos) {
      if (line.back() != ':') fail_nrrd(path, "has the line '" + printable(line, 40) + "'");
    } else {
      const std::string name = nrrd_field(line.substr(0, colon));
      header.fields[name] = trim(line.substr(colon + 2));
      is_list = name == "data file" && header.fields[name].starts_with("LIST");
    }
  }
  if (data == 0 && header.value("data file").empty()) fail_nrrd(path, "has no end of its header");
  return header;
}

/// The one name of a C type with several: "unsigned short int" is "ushort".
std::string nrrd_type_name(std::string name) {
  name = in_small_letters(name);
  if (name.starts_with("signed ")) name.erase(0, 7);
  if (name.starts_with("unsigned ")) name.replace(0, 9, "u");
  for (const char* end : {" int", "_t"}) {
    if (name.ends_with(end)) name.resize(name.size() - std::string_view(end).size());
  }
  std::erase(name, ' ');
  return name;
}

StoredType nrrd_type(const std::string& path, const NrrdHeader& header) {
  // By the names of whole numbers without their sign.
  static const std::map<std::string, int> kBits = {{"char", 8},
                                                   {"int8", 8},
                                                   {"short", 16},
                                                   {"int16", 16},
                                                   {"int", 32},
                                                   {"int32", 32},
                                                   {"longlong", 64},
                                                   {"int64", 64}};
  const std::string name = nrrd_type_name(header.value("type"));
  const bool is_unsigned = name.starts_with("u");
  StoredType type{is_unsigned ? 'u' : 'i', 0};
  if (name == "float" || name == "double") {
    type = {'f', name == "float" ? 32 : 64};
  } else if (const auto found = kBits.find(name.substr(is_unsigned ? 1 : 0));
             found != kBits.end()) {
    type.bits = found->second;
  } else {
    fail_nrrd(path, "has values of the type '" + printable(header.value("type"), 20) + "'");
  }
  const std::string endian = in_small_letters(header.value("endian"));
  if (!endian.empty() && endian != "little" && endian != "big")
    fail_nrrd(path, "has the endian '" + printable(endian, 20) + "'");
  type.is_swapped = endian == "big" && type.bits > 8;
  return type;
}

/// Reads a list of vectors, "(1,2,3)" or "none".
std::vector<std::vector<double>> nrrd_vectors(const std::string& path, std::string_view text) {
  std::vector<std::vector<double>> vectors;
  while (!text.empty()) {
    if (is_blank(text[0])) {
      text.remove_prefix(1);
      continue;
    }
    if (text.starts_with("none")) {
      vectors.emplace_back();
      text.remove_prefix(4);
      continue;
    }
    const std::size_t end = text.find(')');
    if (text[0] != '(' || end == std::string_view::npos)
      fail_nrrd(path, "has the vectors '" + printable(text, 40) + "'");
    std::string numbers(text.substr(1, end - 1));
    std::ranges::replace(numbers, ',', ' ');
    vectors.push_back(real_numbers(path, "a vector", numbers));
    if (vectors.back().size() < 2 || vectors.back().size() > 4)
      fail_nrrd(path, fmt::format("has vectors of {} numbers", vectors.back().size()));
    text.remove_prefix(end + 1);
  }
  return vectors;
}

/// Reads words in quotation marks.
std::vector<std::string> nrrd_texts(const std::string& text) {
  const std::vector<std::string> parts = split(text, '"');
  std::vector<std::string> texts;
  for (std::size_t i = 1; i < parts.size(); i += 2) texts.push_back(parts[i]);
  return texts;
}

/// The millimetres of the unit of axis `i`: mm, as in ITK, unless it is another unit of length.
double nrrd_mm(const std::vector<std::string>& units, std::size_t i) {
  const double unit = i < units.size() ? micrometres(units[i]) / 1000 : 1;
  return unit > 0 ? unit : 1;
}

struct NrrdAxes {
  std::string names;               // "CXYZ", the fastest first
  std::vector<std::size_t> space;  // which are x, y, z
};

NrrdAxes nrrd_axes(const std::string& path,
                   const NrrdHeader& header,
                   std::size_t count,
                   const std::vector<std::vector<double>>& directions) {
  const std::vector<std::string> kinds = header_words(in_small_letters(header.value("kinds")));
  if ((!kinds.empty() && kinds.size() != count) ||
      (!directions.empty() && directions.size() != count))
    fail_nrrd(path,
              fmt::format("has kinds or directions of another number of axes than {}", count));
  NrrdAxes axes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string kind = kinds.empty() ? "???" : kinds[i];
    const bool is_unknown = kind == "???" || kind == "none";
    const bool is_domain = kind == "domain" || kind == "space" || kind == "time";
    const bool is_range = is_unknown ? !directions.empty() && directions[i].empty() : !is_domain;
    if (is_range) {
      axes.names += 'C';
    } else if (kind == "time" || axes.space.size() == 3) {
      axes.names += 'T';
    } else {
      axes.names += "XYZ"[axes.space.size()];
      axes.space.push_back(i);
    }
  }
  if (axes.space.size() < 2 || std::ranges::count(axes.names, 'C') > 1 ||
      std::ranges::count(axes.names, 'T') > 1)
    fail_nrrd(
        path,
        fmt::format(
            "has the axes {} and {} of others", axes.space.size(), count - axes.space.size()));
  return axes;
}

/// The factors that take a space to right, anterior, superior. Spaces without names of sides are
/// left, posterior, superior, as in ITK.
WorldVector nrrd_signs(std::string space) {
  space = in_small_letters(space);
  const auto is = [&](const char* name) { return space.starts_with(name); };  // or with time
  if (is("right-anterior-superior") || is("ras")) return {1, 1, 1};
  if (is("left-anterior-superior") || is("las")) return {-1, 1, 1};
  return {-1, -1, 1};
}

/// The geometry of axes without directions: of `spacings`, which may be negative, and `axis mins`,
/// where a first voxel begins, or has its centre if `centerings` say node.
Geometry nrrd_aligned_geometry(const std::string& path,
                               const NrrdHeader& header,
                               const NrrdAxes& axes) {
  const std::vector<double> spacings = real_numbers(path, "spacings", header.value("spacings")),
                            mins = real_numbers(path, "axis mins", header.value("axis mins"));
  const std::vector<std::string> units = nrrd_texts(header.value("units")),
                                 centerings =
                                     header_words(in_small_letters(header.value("centerings")));
  std::vector<double> steps, origin;
  bool is_placed = true;
  for (const std::size_t i : axes.space) {
    const double unit = 1000 * nrrd_mm(units, i);
    const bool is_node = i < centerings.size() && centerings[i] == "node";
    steps.push_back(i < spacings.size() ? spacings[i] * unit : 0);
    origin.push_back(i < mins.size() ? mins[i] * unit + (is_node ? 0 : steps.back() / 2) : 0);
    is_placed = is_placed && i < mins.size() && std::isfinite(origin.back());
  }
  return axis_aligned_geometry(steps, is_placed ? &origin : nullptr);
}

Geometry nrrd_geometry(const std::string& path,
                       const NrrdHeader& header,
                       const NrrdAxes& axes,
                       const std::vector<std::vector<double>>& directions) {
  if (directions.empty()) return nrrd_aligned_geometry(path, header, axes);
  const WorldVector signs = nrrd_signs(header.value("space"));
  const std::vector<std::string> units = nrrd_texts(header.value("space units"));
  const auto in_world = [&](const std::vector<double>& vector) {
    WorldVector world{};
    for (std::size_t i = 0; i < std::min<std::size_t>(vector.size(), 3); ++i)
      world[i] = signs[i] * vector[i] * nrrd_mm(units, i);
    return world;
  };
  std::vector<WorldVector> steps;
  for (const std::size_t i : axes.space) steps.push_back(in_world(directions[i]));
  const auto origins = nrrd_vectors(path, header.value("space origin"));
  return placed_geometry(steps, origins.empty() ? WorldVector{} : in_world(origins[0]));
}

int64_t nrrd_skip(const std::string& path, const NrrdHeader& header, const char* name) {
  const std::vector<int64_t> numbers = whole_numbers(path, name, header.value(name));
  const int64_t skip = numbers.empty() ? 0 : numbers[0];
  if (numbers.size() > 1 || skip < -1 || skip > INT64_MAX / 4)
    fail_nrrd(path, fmt::format("has a {} of {}", name, skip));
  return skip;
}

/// The files of the voxels, as the header names them; empty: the voxels follow the header.
std::vector<std::string> nrrd_files(const std::string& path,
                                    const NrrdHeader& header,
                                    const std::vector<int64_t>& sizes) {
  const std::string place = header.value("data file");
  if (place.empty() || place.starts_with("LIST")) return header.files;
  if (place.find('%') == std::string::npos) return {place};
  return numbered_names(path, place, sizes.back());
}

RawVoxels::Packing nrrd_packing(const std::string& path, const NrrdHeader& header) {
  const std::string encoding = in_small_letters(header.value("encoding"));
  if (encoding == "raw") return RawVoxels::Packing::none;
  if (encoding == "gzip" || encoding == "gz") return RawVoxels::Packing::deflate;
  if (encoding == "ascii" || encoding == "text" || encoding == "txt")
    return RawVoxels::Packing::text;
  throw DataError(
      "{}: an NRRD with the encoding '{}', expected raw, gzip or ascii; save it with one of them",
      path,
      printable(encoding, 20));
}

void find_nrrd_voxels(const std::string& path,
                      const NrrdHeader& header,
                      const std::vector<int64_t>& sizes,
                      RawVoxels& voxels) {
  voxels.packing = nrrd_packing(path, header);
  const int64_t lines = std::max<int64_t>(nrrd_skip(path, header, "line skip"), 0);
  const int64_t bytes = nrrd_skip(path, header, "byte skip");
  const bool is_packed = voxels.packing == RawVoxels::Packing::deflate;
  if (is_packed) voxels.skipped = static_cast<uint64_t>(bytes);
  if (is_packed && (bytes < 0 || bytes > (int64_t{64} << 20)))
    fail_nrrd(path, fmt::format("has a byte skip of {} in compressed data", bytes));
  std::vector<std::string> files;
  for (const std::string& name : nrrd_files(path, header, sizes))
    files.push_back(find_file(path, name));
  const bool is_behind = header.value("data file").empty();
  if (is_behind) files.push_back(path);
  for (const std::string& file : files) {
    RawVoxels::DataFile data;
    data.path = file;
    data.begin = after_lines(path, file, is_behind ? header.end : 0, lines);
    data.is_at_end = bytes == -1;
    if (bytes > 0 && !is_packed) data.begin += static_cast<uint64_t>(bytes);
    voxels.files.push_back(data);
  }
}

bool is_nrrd(const std::string& head, const std::string&) {
  return head.starts_with("NRRD000");
}

std::unique_ptr<ImageReader> open_nrrd(const std::string& path, const Selection& selection) {
  const NrrdHeader header = parse_nrrd(path);
  RawVoxels voxels;
  ImageInfo info;
  voxels.samples.type = nrrd_type(path, header);
  const std::vector<int64_t> sizes = whole_numbers(path, "sizes", header.value("sizes"));
  const std::vector<int64_t> dimension =
      whole_numbers(path, "dimension", header.value("dimension"));
  if (sizes.size() < 2 || sizes.size() > 5 || dimension.size() != 1 ||
      dimension[0] != std::ssize(sizes))
    fail_nrrd(path, fmt::format("has {} sizes", sizes.size()));
  const auto directions = nrrd_vectors(path, header.value("space directions"));
  const NrrdAxes axes = nrrd_axes(path, header, sizes.size(), directions);
  set_axes(path, axes.names, sizes, info, voxels);
  info.geometry = nrrd_geometry(path, header, axes, directions);
  find_nrrd_voxels(path, header, sizes, voxels);
  return open_raw(path, info, voxels, selection);
}

std::vector<std::string> nrrd_other_files(const std::string& path) {
  const NrrdHeader header = parse_nrrd(path);
  const std::vector<int64_t> sizes = whole_numbers(path, "sizes", header.value("sizes"));
  std::vector<std::string> files;
  if (sizes.empty()) return files;
  for (const std::string& name : nrrd_files(path, header, sizes))
    files.push_back(named_file(path, name));
  return files;
}

std::string nrrd_place(const ImageInfo& info, const std::string& channels) {
  const LpsGeometry place = lps_geometry(info);
  const std::size_t count = place.dimensions;
  if (!place.is_placed) {
    const bool is_known = *std::ranges::max_element(place.spacing) > 0;
    if (!is_known) return "";
    std::string spacings = channels.empty() ? "" : " nan", units = channels.empty() ? "" : " \"\"";
    for (std::size_t i = 0; i < count; ++i) {
      spacings += place.spacing[i] > 0 ? fmt::format(" {}", place.spacing[i]) : " nan";
      units += " \"mm\"";
    }
    return fmt::format("spacings:{}\nunits:{}\n", spacings, units);
  }
  std::string directions = channels.empty() ? "" : " none";
  for (std::size_t i = 0; i < count; ++i)
    directions += fmt::format(
        " ({})", fmt::join(place.steps[i].begin(), place.steps[i].begin() + count, ","));
  return fmt::format("{}\nspace directions:{}\nspace origin: ({})\n",
                     count == 3 ? "space: left-posterior-superior" : "space dimension: 2",
                     directions,
                     fmt::join(place.origin.begin(), place.origin.begin() + count, ","));
}

std::unique_ptr<ImageWriter> create_nrrd(const std::string& path,
                                         const ImageInfo& info,
                                         const OutputOptions&) {
  constexpr const char* kNames[] = {
      "uint8", "int8", "uint16", "int16", "uint32", "int32", "float", "double"};
  const auto [c, z, y, x] = info.shape;
  const bool is_plane = lps_geometry(info).dimensions == 2;
  const std::string channels = c > 1 ? fmt::format(" {}", c) : "";
  RawOutput output;
  output.is_gzip = true;
  output.head = fmt::format(
      "NRRD0004\ntype: {}\ndimension: {}\nsizes:{} {} {}{}\n{}kinds:{} domain domain{}\n"
      "endian: little\nencoding: gzip\n",
      kNames[static_cast<std::size_t>(info.dtype)],
      (is_plane ? 2 : 3) + (c > 1 ? 1 : 0),
      channels,
      x,
      y,
      is_plane ? "" : fmt::format(" {}", z),
      nrrd_place(info, channels),
      channels.empty() ? "" : " vector",
      is_plane ? "" : " domain");
  if (in_small_letters(path).ends_with(".nhdr")) {
    output.data_path = path.substr(0, path.size() - 5) + ".raw.gz";
    output.head +=
        "data file: " + std::filesystem::path(output.data_path).filename().string() + "\n";
  }
  output.head += "\n";
  return create_raw(path, info, output);
}

const bool nrrd_is_known = add_format("nrrd", [](Format& nrrd) {
  nrrd.title = "NRRD";
  nrrd.rank = 32;
  nrrd.endings = nrrd.written_endings = {".nrrd", ".nhdr"};
  nrrd.media_type = "application/x-nrrd";
  nrrd.probe = is_nrrd;
  nrrd.open = open_nrrd;
  nrrd.names_own_axes = true;
  nrrd.other_files = nrrd_other_files;
  nrrd.create = create_nrrd;
  nrrd.position = Format::Position::direction;
});

}  // namespace
}  // namespace cytra::io
