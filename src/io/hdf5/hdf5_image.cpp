// Reads a data set of an HDF5 file as an image; exported by libcytra_hdf5.so.
#include <algorithm>

#include "base/error.h"
#include "io/hdf5/hdf5_file.h"
#include "io/module.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr char kAxes[] = "tczyx";

class Hdf5Image final : public ImageReader {
 public:
  Hdf5Image(const std::string& path, const std::string& set, const Selection& selection)
      : path_(path), file_(path, set) {
    const std::vector<hsize_t>& shape = file_.shape();
    std::string axes = file_.axes();
    if (!selection.axes.empty() && shape.size() >= 2 && shape.size() <= 5) {
      axes.clear();
      for (const char name : array_axes(path, selection.axes, {shape.begin(), shape.end()}))
        axes += name == '-' ? '-' : static_cast<char>(name - 'A' + 'a');
      if (file_.is_matlab()) std::swap(axes.end()[-1], axes.end()[-2]);
    }
    if (axes.empty() && (shape.size() == 5 || file_.is_matlab())) {
      throw DataError("{}: {} dimensions, expected 2 or 3{}, or data.axes, which names them",
                      path,
                      shape.size(),
                      file_.is_matlab() ? "" : ", 4, ilastik's attribute axistags");
    }
    if (axes.empty()) axes = std::string(kAxes).substr(5 - shape.size());
    std::array<int64_t, 5> sides{1, 1, 1, 1, 1};
    for (std::size_t i = 0; i < 5; ++i) {
      axis_[i] = axes.find(kAxes[i]);
      if (axis_[i] == std::string::npos) continue;
      if (axes.find(kAxes[i], axis_[i] + 1) != std::string::npos)
        throw DataError(path + ": axes '" + axes + "', expected each once");
      sides[i] = static_cast<int64_t>(std::min<hsize_t>(shape[axis_[i]], INT64_MAX));
    }
    if (axis_[3] == std::string::npos || axis_[4] == std::string::npos)
      throw DataError(path + ": axes '" + axes + "', expected y and x among them");
    info_.dtype = dtype_of(file_.type()).value();
    info_.timepoints = sides[0];
    info_.shape = {sides[1], sides[2], sides[3], sides[4]};
    info_.geometry.spacing_um = file_.spacing_um();
    check_shape(path, info_.shape, info_.dtype, file_.bytes());
    chosen_ = select(path, selection, info_);
  }

  Image read(const Region& region) const override {
    const Region part = within(region, info_.shape, path_);
    Image image = allocate_part(path_, info_, part, file_.bytes());
    const auto [least, most] = std::ranges::minmax_element(chosen_.channels);
    // The order is t, c, z, y, x.
    const std::array<int64_t, 5> begin{
        chosen_.timepoint, *least, part.begin[0], part.begin[1], part.begin[2]};
    const std::array<int64_t, 5> end{chosen_.timepoint + 1,
                                     *most + 1,
                                     part.begin[0] + part.size[0],
                                     part.begin[1] + part.size[1],
                                     part.begin[2] + part.size[2]};
    std::vector<hsize_t> first(file_.shape().size()), last(first.size());
    for (std::size_t i = 0; i < 5; ++i) {
      if (axis_[i] == std::string::npos) continue;
      const hsize_t side = file_.chunk()[axis_[i]];
      first[axis_[i]] = static_cast<hsize_t>(begin[i]) / side * side;
      last[axis_[i]] = static_cast<hsize_t>(end[i]);
    }
    std::vector<unsigned char> values;
    std::vector<hsize_t> at = first;
    for (bool is_left = true; is_left;) {
      file_.read_chunk(at, values);
      put(values, at, begin, end, part, image);
      is_left = false;
      for (std::size_t i = at.size(); i-- > 0 && !is_left;) {  // the next chunk
        at[i] += file_.chunk()[i];
        is_left = at[i] < last[i];
        if (!is_left) at[i] = first[i];
      }
    }
    return image;
  }

 private:
  void put(const std::vector<unsigned char>& values,
           const std::vector<hsize_t>& at,
           const std::array<int64_t, 5>& begin,
           const std::array<int64_t, 5>& end,
           const Region& part,
           Image& image) const {
    std::vector<std::ptrdiff_t> steps(at.size());
    auto step = static_cast<std::ptrdiff_t>(file_.type().size());
    for (std::size_t i = at.size(); i-- > 0;) {
      steps[i] = step;
      step *= static_cast<std::ptrdiff_t>(file_.chunk()[i]);
    }
    // The common part of chunk and region, and the chunk's steps, in t, c, z, y, x.
    std::array<int64_t, 5> from = begin, to = end, place{};
    std::array<std::ptrdiff_t, 5> apart{};
    for (std::size_t i = 0; i < 5; ++i) {
      if (axis_[i] == std::string::npos) continue;
      place[i] = static_cast<int64_t>(at[axis_[i]]);
      from[i] = std::max(begin[i], place[i]);
      to[i] = std::min(end[i], place[i] + static_cast<int64_t>(file_.chunk()[axis_[i]]));
      apart[i] = steps[axis_[i]];
    }
    const std::size_t size = size_of(image.dtype);
    for (std::size_t c = 0; c < chosen_.channels.size(); ++c) {
      const int64_t channel = chosen_.channels[c];
      if (channel < from[1] || channel >= to[1]) continue;
      for (int64_t z = from[2]; z < to[2]; ++z) {
        for (int64_t y = from[3]; y < to[3]; ++y) {
          const unsigned char* source = values.data() + (from[0] - place[0]) * apart[0] +
                                        (channel - place[1]) * apart[1] +
                                        (z - place[2]) * apart[2] + (y - place[3]) * apart[3] +
                                        (from[4] - place[4]) * apart[4];
          const int64_t row =
              (static_cast<int64_t>(c) * part.size[0] + z - part.begin[0]) * part.size[1] + y -
              part.begin[1];
          const auto into = static_cast<std::size_t>(row * part.size[2] + from[4] - part.begin[2]);
          convert(path_,
                  file_.type(),
                  source,
                  apart[4],
                  to[4] - from[4],
                  image.pixels.data() + into * size);
        }
      }
    }
  }

  std::string path_;
  Hdf5File file_;
  std::array<std::size_t, 5> axis_{};  // of the data set for t, c, z, y, x; npos: none
  Chosen chosen_;
};

}  // namespace
}  // namespace cytra::io

extern "C" cytra::io::ImageReader* cytra_open_image(const std::string& path,
                                                    const cytra::io::Selection& selection) {
  const std::string file = cytra::io::file_of(path);
  const std::string set = path.size() > file.size() ? path.substr(file.size() + 1) : "";
  return new cytra::io::Hdf5Image(file, set, selection);
}
