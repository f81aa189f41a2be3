#pragma once
// Reads one data set of an HDF5 file through libhdf5, which decodes nothing: chunks come as stored
// in the file. Filters: https://docs.hdfgroup.org/hdf5/v1_14/_f_i_l_t_e_r.html
#include <array>
#include <mutex>
#include <string>
#include <vector>

#define H5_USE_110_API  // later versions keep it
#include <hdf5.h>

#include "io/input_file.h"
#include "io/pixels/stored.h"

namespace cytra::io {

/// The mutex of the library, which only one thread may use at a time.
std::mutex& hdf5_mutex();

/// An identifier and the function that closes it.
class Hdf5Id {
 public:
  Hdf5Id() = default;
  Hdf5Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Id(Hdf5Id&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = -1; }
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// A data set of a file. Thread: read_chunk() may run on several threads.
class Hdf5File {
 public:
  /// Opens a data set. `set`: its place in the file, or "" for the only one that may be an image.
  /// Throws: DataError, which lists the data sets when there are others.
  Hdf5File(const std::string& path, const std::string& set);
  ~Hdf5File();
  std::size_t bytes() const { return bytes_; }
  const StoredType& type() const { return type_; }
  const std::vector<hsize_t>& shape() const { return shape_; }
  /// The size of chunks, or of pieces of a data set without chunks.
  const std::vector<hsize_t>& chunk() const { return chunk_; }
  const std::string& axes() const { return axes_; }  // "zyxc", or "" when the file does not say
  bool is_matlab() const { return is_matlab_; }  // its arrays are stored with their axes reversed
  const std::array<double, 3>& spacing_um() const { return spacing_um_; }  // z, y, x; 0: unknown
  /// Reads the chunk that begins at `at`; it is a whole chunk also at the edge.
  void read_chunk(const std::vector<hsize_t>& at, std::vector<unsigned char>& values) const;

 private:
  void open_set(const std::string& set);
  void read_type();
  void read_layout();
  void read_axes();
  std::string text_of(const char* name) const;
  bool decode(unsigned skipped,
              std::vector<unsigned char> packed,
              std::vector<unsigned char>& values) const;
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const;

  std::string path_;
  InputFile input_;
  std::size_t bytes_ = 0;
  std::size_t user_block_ = 0;  // bytes before the HDF5 file itself
  Hdf5Id file_, set_, stored_;  // closed in the opposite order
  StoredType type_;
  std::vector<hsize_t> shape_, chunk_;
  std::size_t chunk_bytes_ = 0;
  bool is_chunked_ = false, is_matlab_ = false;
  std::vector<int> filters_;
  std::vector<unsigned char> fill_;
  std::string axes_;
  std::array<double, 3> spacing_um_{};
};

}  // namespace cytra::io
