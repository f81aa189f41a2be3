#include "io/dicom/dicom_series.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/warn_once.h"
#include "io/input_file.h"
#include "io/module.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;
using Vector = std::array<double, 3>;

constexpr double kUneven = 0.01, kGap = 0.5;  // shares of the usual distance: to warn, to refuse

double dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vector normal_of(const std::array<double, 6>& o) {
  return {o[1] * o[5] - o[2] * o[4], o[2] * o[3] - o[0] * o[5], o[0] * o[4] - o[1] * o[3]};
}

/// Whether both are unit vectors at a right angle.
bool is_orientation(const std::array<double, 6>& o) {
  const Vector row{o[0], o[1], o[2]}, column{o[3], o[4], o[5]};
  return std::abs(dot(row, row) - 1) < 1e-3 && std::abs(dot(column, column) - 1) < 1e-3 &&
         std::abs(dot(row, column)) < 1e-3;
}
bool is_near(const std::array<double, 6>& a, const std::array<double, 6>& b) {
  for (std::size_t i = 0; i < 6; ++i) {
    if (std::abs(a[i] - b[i]) > 1e-4) return false;
  }
  return true;
}

struct Numbered {
  int64_t instance;
  DicomSlice slice;
};
struct Group {
  DicomStack stack;
  std::vector<Numbered> slices;
};

std::vector<std::string> files_of(const std::string& path) {
  if (!folder_exists(path)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name[0] == '.' || name == "DICOMDIR" || !file_exists(entry.path())) continue;
    const InputFile file(entry.path().string());
    char head[kHeadBytes];
    const int64_t count = file.read_at(0, head, sizeof head);
    // There may be licences and lists beside images.
    if (count > 0 && is_dicom({head, static_cast<std::size_t>(count)}, name))
      files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

void add(const std::string& file, std::vector<Group>& groups) {
  const DicomFile opened(file);
  const DicomHeader& header = opened.header();
  const std::size_t bytes = fs::file_size(file);
  for (std::size_t i = 0; i < header.frames.size(); ++i) {
    DicomFrame frame = header.frames[i];
    frame.has_orientation = frame.has_orientation && is_orientation(frame.orientation);
    auto group = std::ranges::find_if(groups, [&](const Group& other) {
      const DicomFrame& first = other.slices[0].slice.where;
      return other.stack.header.series == header.series && other.stack.header.like(header) &&
             first.has_orientation == frame.has_orientation &&
             (!frame.has_orientation || is_near(first.orientation, frame.orientation));
    });
    if (group == groups.end()) {
      groups.emplace_back();
      group = groups.end() - 1;
      group->stack.header = header;
      group->stack.header.frames.clear();
    }
    std::vector<std::string>& files = group->stack.files;
    if (files.empty() || files.back() != file) {
      files.push_back(file);
      group->stack.headers.push_back(header);
      group->stack.file_bytes += bytes;
    }
    int& bits = group->stack.header.stored_bits;  // some scanners use as many bits as each slice
                                                  // needs
    bits = std::max(bits, header.stored_bits);
    group->slices.push_back({header.instance, {files.size() - 1, static_cast<int64_t>(i), frame}});
  }
}

std::string list_of(const std::vector<Group>& groups) {
  std::string list;
  for (std::size_t i = 0; i < groups.size() && i < 20; ++i) {
    const DicomHeader& header = groups[i].stack.header;
    list += fmt::format("{}{}: {} '{}', {} slice{} of {} x {}",
                        i == 0 ? "" : "; ",
                        i,
                        header.series.empty() ? "no UID" : header.series,
                        header.description,
                        groups[i].slices.size(),
                        groups[i].slices.size() == 1 ? "" : "s",
                        header.rows,
                        header.columns);
  }
  return list + (groups.size() > 20 ? "; ..." : "");
}

/// Sorts by place, then by instance number; sets planes and time points.
void sort_by_place(const std::string& path, Group& group, const Vector& normal) {
  std::vector<Numbered>& slices = group.slices;
  const auto place = [&](const Numbered& numbered) {
    return dot(normal, numbered.slice.where.position);
  };
  std::ranges::stable_sort(slices, {}, place);
  const double range = place(slices.back()) - place(slices.front()),
               same = 0.01 * range / static_cast<double>(slices.size());
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (starts.empty() || place(slices[i]) - place(slices[starts.back()]) > same)
      starts.push_back(i);
  }
  const std::size_t planes = starts.size(), times = slices.size() / planes;
  for (std::size_t i = 0; i < planes; ++i) {
    const std::size_t end = i + 1 < planes ? starts[i + 1] : slices.size();
    if (end - starts[i] != times) {
      throw DataError(
          "{}: {} slices lie at {:.3f} mm along the normal and {} at another place, expected one, "
          "or as many for each time point; the series may be incomplete",
          path,
          end - starts[i],
          place(slices[starts[i]]),
          starts.size() > 1 ? starts[1] : 0);
    }
    std::stable_sort(slices.begin() + static_cast<std::ptrdiff_t>(starts[i]),
                     slices.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Numbered& a, const Numbered& b) { return a.instance < b.instance; });
  }
  std::vector<Numbered> ordered;
  for (std::size_t t = 0; t < times; ++t) {
    for (std::size_t z = 0; z < planes; ++z) ordered.push_back(slices[starts[z] + t]);
  }
  slices.swap(ordered);
  group.stack.planes = static_cast<int64_t>(planes);
  group.stack.timepoints = static_cast<int64_t>(times);
}

void sort_by_number(const std::string& path, Group& group) {
  std::vector<Numbered>& slices = group.slices;
  std::ranges::stable_sort(slices, {}, &Numbered::instance);
  for (std::size_t i = 1; i < slices.size(); ++i) {
    const DicomSlice &before = slices[i - 1].slice, &slice = slices[i].slice;
    if (slice.file != before.file && slices[i].instance == slices[i - 1].instance) {
      throw DataError(
          "{}: its slices have no order, expected ImagePositionPatient, or an InstanceNumber of "
          "their own for {} and {}",
          path,
          group.stack.files[before.file],
          group.stack.files[slice.file]);
    }
  }
  const auto count = std::ssize(slices);
  (group.stack.header.is_cine ? group.stack.timepoints : group.stack.planes) = count;
}

/// Checks the distances of successive planes. Throws: DataError when one seems to be missing.
void check_distances(const std::string& path, const Group& group, const Vector& normal) {
  std::vector<double> distances;
  for (std::size_t z = 1; z < static_cast<std::size_t>(group.stack.planes); ++z) {
    distances.push_back(dot(normal, group.slices[z].slice.where.position) -
                        dot(normal, group.slices[z - 1].slice.where.position));
  }
  if (distances.size() < 2) return;
  std::vector<double> sorted = distances;
  std::ranges::sort(sorted);
  const double usual = sorted[sorted.size() / 2];
  if (sorted.back() > (1 + kGap) * usual) {
    const auto widest = std::ranges::max_element(distances) - distances.begin();
    throw DataError(
        "{}: {:.3f} mm between planes {} and {} and {:.3f} mm between most, expected equal "
        "distances; slices may be missing: copy the series again",
        path,
        sorted.back(),
        widest,
        widest + 1,
        usual);
  }
  if (sorted.back() - sorted.front() > kUneven * usual) {
    warn_once(fmt::format("{}: its slices are {:.3f} to {:.3f} mm apart; their mean is taken",
                          path,
                          sorted.front(),
                          sorted.back()));
  }
}

/// Sets the geometry from the positions of the first and last plane, like MONAI's PydicomReader.
void set_geometry(DicomStack& stack, bool has_place) {
  const DicomFrame& first = stack.slices[0].where;
  const DicomFrame& last = stack.slices[static_cast<std::size_t>(stack.planes) - 1].where;
  Geometry& geometry = stack.geometry;
  geometry.spacing_um = {first.plane_mm * 1000, first.pixel_mm[0] * 1000, first.pixel_mm[1] * 1000};
  if (!has_place) return;
  const std::array<double, 6>& o = first.orientation;
  Vector step = normal_of(o);
  for (std::size_t i = 0; i < 3; ++i) {
    step[i] = stack.planes > 1
                  ? (last.position[i] - first.position[i]) / static_cast<double>(stack.planes - 1)
                  : step[i] * first.plane_mm;
  }
  geometry.spacing_um[0] = std::sqrt(dot(step, step)) * 1000;
  if (first.pixel_mm[0] <= 0 || first.pixel_mm[1] <= 0 || geometry.spacing_um[0] <= 0) return;
  for (std::size_t i = 0; i < 3; ++i) {
    const double sign = i < 2 ? -1 : 1;  // left, posterior to right, anterior
    geometry.affine[4 * i] = sign * o[i] * first.pixel_mm[1];
    geometry.affine[4 * i + 1] = sign * o[3 + i] * first.pixel_mm[0];
    geometry.affine[4 * i + 2] = sign * step[i];
    geometry.affine[4 * i + 3] = sign * first.position[i];
  }
}

bool is_whole(double value) {
  return std::floor(value) == value;
}

/// The stored type when every scaled value fits, else the smallest integers that hold them; f32
/// when a scale is no mapping of integers.
Dtype scaled_type(const DicomStack& stack) {
  const DicomHeader& header = stack.header;
  const Dtype stored = dtype_of(header.type).value();
  const bool is_signed = header.type.kind == 'i';
  const double top = std::ldexp(1.0, header.stored_bits - (is_signed ? 1 : 0)) - 1,
               bottom = is_signed ? -top - 1 : 0;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  bool is_scaled = false;
  for (const DicomSlice& slice : stack.slices) {
    const Scale& scale = slice.where.scale;
    is_scaled = is_scaled || scale.slope != 1 || scale.offset != 0;
    if (scale.slope == 1 && scale.offset == 0 && !is_scaled) continue;
    if (header.type.kind == 'f' || !is_whole(scale.slope) || !is_whole(scale.offset))
      return Dtype::f32;
    for (const double end : {bottom, top}) {
      least = std::min(least, scale.slope * end + scale.offset);
      most = std::max(most, scale.slope * end + scale.offset);
    }
  }
  if (!is_scaled) return stored;
  least = std::min(least, bottom), most = std::max(most, top);  // the slices' values are as stored
  return least >= -32768 && most <= 32767                ? Dtype::i16
         : least >= 0 && most <= 65535                   ? Dtype::u16
         : least >= -2147483648.0 && most < 2147483648.0 ? Dtype::i32
                                                         : Dtype::f32;
}

}  // namespace

DicomStack read_stack(const std::string& path, int64_t scene, int64_t& scenes) {
  std::vector<Group> groups;
  for (const std::string& file : files_of(path)) add(file, groups);
  if (groups.empty()) throw DataError(path + ": no DICOM files in this folder, expected a series");
  const auto first_instance = [](const Group& group) {
    int64_t first = group.slices[0].instance;
    for (const Numbered& numbered : group.slices) first = std::min(first, numbered.instance);
    return first;
  };
  std::ranges::stable_sort(groups, [&](const Group& a, const Group& b) {
    const int order = a.stack.header.series.compare(b.stack.header.series);
    return order != 0 ? order < 0 : first_instance(a) < first_instance(b);
  });
  scenes = std::ssize(groups);
  if (scene < -1 || scene >= scenes || (scene == -1 && scenes > 1)) {
    throw DataError(
        "{}: {}{} DICOM series (or orientations, or sizes), expected one: choose a scene, or move "
        "each to a folder of its own; {}",
        path,
        scene == -1 ? "" : fmt::format("no scene {} among ", scene),
        scenes,
        list_of(groups));
  }
  Group& group = groups[scene == -1 ? 0 : static_cast<std::size_t>(scene)];
  DicomStack& stack = group.stack;
  const DicomFrame& first = group.slices[0].slice.where;
  std::size_t placed = 0;
  for (const Numbered& numbered : group.slices) {
    placed += numbered.slice.where.has_position ? 1 : 0;
    if (numbered.slice.where.pixel_mm != first.pixel_mm) {
      throw DataError(
          "{}: its pixels have another size than those of {}, expected one PixelSpacing in a "
          "series",
          stack.files[numbered.slice.file],
          stack.files[group.slices[0].slice.file]);
    }
  }
  const bool has_place = first.has_orientation && placed == group.slices.size() &&
                         !(stack.header.is_cine && stack.files.size() == 1);
  if (has_place) {
    const Vector normal = normal_of(first.orientation);
    sort_by_place(path, group, normal);
    check_distances(path, group, normal);
  } else {
    sort_by_number(path, group);
  }
  for (const Numbered& numbered : group.slices) stack.slices.push_back(numbered.slice);
  stack.dtype = scaled_type(stack);
  set_geometry(stack, has_place);
  return stack;
}

}  // namespace cytra::io
