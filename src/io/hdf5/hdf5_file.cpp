#include "io/hdf5/hdf5_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/hdf5/hdf5_text.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20, kMostObjects = 10000, kMostMissing = 20000;

herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

/// The data sets of 2 to 5 dimensions, "path: 3 x 4"; soft and external links are not followed.
struct FoundDataSets {
  bool is_matlab = false;
  std::size_t objects = 0;
  std::map<std::string, std::string> sets;  // with their shapes
  std::vector<std::string> closed;          // libhdf5 does not open them
};
herr_t add_set(hid_t root, const char* name, const H5O_info_t* info, void* data) {
  auto& found = *static_cast<FoundDataSets*>(data);
  if (++found.objects > kMostObjects) return 1;
  if (info->type != H5O_TYPE_DATASET) return 0;
  const Hdf5Id set(H5Dopen2(root, name, H5P_DEFAULT), H5Dclose);
  if (!set) {
    found.closed.emplace_back(name);
    return 0;
  }
  const Hdf5Id space(H5Dget_space(set.get()), H5Sclose), type(H5Dget_type(set.get()), H5Tclose);
  const int axes = space ? H5Sget_simple_extent_ndims(space.get()) : 0;
  const H5T_class_t kind = type ? H5Tget_class(type.get()) : H5T_NO_CLASS;
  if (axes < 2 || axes > 5 || (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM))
    return 0;
  hsize_t sides[5];
  H5Sget_simple_extent_dims(space.get(), sides, nullptr);
  // Of MATLAB's, numbers and texts are arrays of one row, and #refs# has what cells hold.
  const bool is_part = name[0] == '#' || sides[axes - 1] < 2 || sides[axes - 2] < 2;
  if (found.is_matlab && is_part) return 0;
  if (found.is_matlab) std::reverse(sides, sides + axes);
  found.sets[name] = fmt::format("{}", fmt::join(sides, sides + axes, " x "));
  return 0;
}

void unshuffle(std::vector<unsigned char>& values, std::size_t size) {
  const std::size_t count = values.size() / size;
  std::vector<unsigned char> whole(values.size());
  for (std::size_t byte = 0; byte < size; ++byte) {
    for (std::size_t i = 0; i < count; ++i) whole[i * size + byte] = values[byte * count + i];
  }
  values.swap(whole);
}

}  // namespace

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

void Hdf5File::fail(const std::string& what, const std::string& expected) const {
  throw DataError("{}: {}, expected {}", path_, what, expected);
}

Hdf5File::Hdf5File(const std::string& path, const std::string& set) : path_(path), input_(path) {
  bytes_ = static_cast<std::size_t>(input_.bytes());
  is_matlab_ = input_.begin(6) == "MATLAB";
  const std::lock_guard<std::mutex> lock(hdf5_mutex());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);  // loads no code from the file system
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  file_ = Hdf5Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file_) {
    fail(
        "the HDF5 file can't be opened",
        "a complete file that no program writes to; it may be truncated or damaged: copy it again");
  }
  const Hdf5Id creation(H5Fget_create_plist(file_.get()), H5Pclose);
  hsize_t user_block = 0;
  if (creation && H5Pget_userblock(creation.get(), &user_block) >= 0) user_block_ = user_block;
  try {
    open_set(set);
    read_type();
    read_layout();
    read_axes();
  } catch (...) {  // while the lock is held
    stored_ = Hdf5Id();
    set_ = Hdf5Id();
    file_ = Hdf5Id();
    throw;
  }
}

Hdf5File::~Hdf5File() {
  const std::lock_guard<std::mutex> lock(hdf5_mutex());
  stored_ = Hdf5Id();
  set_ = Hdf5Id();
  file_ = Hdf5Id();
}

void Hdf5File::open_set(const std::string& set) {
  std::string name = set;
  FoundDataSets found;
  found.is_matlab = is_matlab_;
  // The file's order is used, as for another one libhdf5 trusts the number of links that the file
  // claims.
  if (H5Ovisit2(file_.get(), H5_INDEX_NAME, H5_ITER_NATIVE, add_set, &found, H5O_INFO_BASIC) < 0)
    fail("its groups can't be read", "a complete file; it may be damaged");
  if (name.empty() && found.sets.size() == 1) name = found.sets.begin()->first;
  std::string list;
  int listed = 0;
  for (auto entry = found.sets.begin(); entry != found.sets.end() && listed < 20; ++entry, ++listed)
    list += fmt::format("{}{} ({})", listed == 0 ? "" : ", ", entry->first, entry->second);
  if (found.sets.empty()) list = "none of 2 to 5 dimensions";
  const bool is_closed = name.empty() ? found.sets.empty() && !found.closed.empty()
                                      : std::ranges::count(found.closed, name) > 0;
  if (is_closed) {
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    fail(fmt::format("HDF5 {}.{}.{} can't open its data set '{}'; a newer version wrote it "
                     "(h5py's libver='latest'?), or it is damaged",
                     major,
                     minor,
                     release,
                     printable(name.empty() ? found.closed[0] : name)),
         "a file written without libver='latest'; to convert it: h5repack --high=0 IN.h5 OUT.h5");
  }
  if (name.empty()) {
    fail(fmt::format("{} data sets that may be images", found.sets.size()),
         fmt::format("one, or its place behind the name: {}/DATASET; data sets: {}", path_, list));
  }
  const Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_elink_cb(access.get(), refuse_link, nullptr);
  set_ = Hdf5Id(H5Dopen2(file_.get(), name.c_str(), access.get()), H5Dclose);
  if (!set_) fail("no data set '" + name + "' in this file", "one of its data sets: " + list);
  const Hdf5Id space(H5Dget_space(set_.get()), H5Sclose);
  const int axes = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (axes < 2 || axes > 5)
    fail(fmt::format("'{}' has {} dimensions", name, axes), "2 to 5; data sets: " + list);
  shape_.resize(static_cast<std::size_t>(axes));
  H5Sget_simple_extent_dims(space.get(), shape_.data(), nullptr);
}

void Hdf5File::read_type() {
  Hdf5Id type(H5Dget_type(set_.get()), H5Tclose);
  const bool is_truth = type && H5Tget_class(type.get()) == H5T_ENUM;
  if (is_truth)  // h5py's; others are labels
    type = Hdf5Id(H5Tget_super(type.get()), H5Tclose);
  const H5T_class_t kind = type ? H5Tget_class(type.get()) : H5T_NO_CLASS;
  const std::size_t size = type ? H5Tget_size(type.get()) : 0;
  type_.bits = static_cast<int>(std::min<std::size_t>(size, 64) * 8);
  type_.is_swapped = size > 1 && H5Tget_order(type.get()) == H5T_ORDER_BE;
  bool is_plain = kind == H5T_INTEGER && H5Tget_precision(type.get()) == size * 8;
  if (kind == H5T_INTEGER) type_.kind = H5Tget_sign(type.get()) == H5T_SGN_2 ? 'i' : 'u';
  if (is_truth && size == 1) type_.kind = 'u';
  if (kind == H5T_FLOAT) {
    type_.kind = 'f';
    std::size_t sign = 0, exponent = 0, exponent_bits = 0, fraction = 0, fraction_bits = 0;
    H5Tget_fields(type.get(), &sign, &exponent, &exponent_bits, &fraction, &fraction_bits);
    is_plain = fraction == 0 && exponent == fraction_bits && sign + 1 == size * 8 &&
               exponent_bits == (size == 2   ? 5U
                                 : size == 4 ? 8U
                                             : 11U);
  }
  if (!is_plain || !dtype_of(type_)) fail("its values are not plain numbers", "integers or floats");
  stored_ = std::move(type);
}

void Hdf5File::read_layout() {
  const Hdf5Id creation(H5Dget_create_plist(set_.get()), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.get()) != 0)
    fail("a data set whose values lie in other files", "one with its own values");
  is_chunked_ = layout == H5D_CHUNKED;
  const std::size_t size = type_.size();
  chunk_.assign(shape_.size(), 1);
  if (is_chunked_) {
    if (H5Pget_chunk(creation.get(), static_cast<int>(chunk_.size()), chunk_.data()) !=
        static_cast<int>(chunk_.size()))
      fail("chunks of other dimensions than its own", "a complete file");
  } else {
    std::size_t piece = size;
    for (std::size_t i = chunk_.size(); i-- > 0 && piece < kPiece;) {
      chunk_[i] = std::max<hsize_t>(1, std::min<hsize_t>(shape_[i], kPiece / piece));
      piece *= chunk_[i];
    }
  }
  chunk_bytes_ = size;
  for (const hsize_t side : chunk_) {
    if (side < 1 || __builtin_mul_overflow(chunk_bytes_, side, &chunk_bytes_) ||
        !is_plausible(chunk_bytes_, bytes_))
      fail("the size of its chunks is not plausible", "at most what the file can hold");
  }
  std::size_t chunks = 1;  // each is looked for; those that are there take more than 16 bytes
  for (std::size_t i = 0; is_chunked_ && i < chunk_.size(); ++i) {
    const std::size_t along = shape_[i] / chunk_[i] + (shape_[i] % chunk_[i] == 0 ? 0 : 1);
    if (__builtin_mul_overflow(chunks, along, &chunks) || chunks > kMostMissing + bytes_ / 16)
      fail("its chunks are too many", "no more than the file can hold; it may be damaged");
  }
  const int filters = H5Pget_nfilters(creation.get());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, settings = 0;
    std::size_t count = 0;
    char name[64] = {};
    const H5Z_filter_t filter = H5Pget_filter2(creation.get(),
                                               static_cast<unsigned>(i),
                                               &flags,
                                               &count,
                                               nullptr,
                                               sizeof name,
                                               name,
                                               &settings);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32) {
      for (char& letter : name)
        letter = letter == '\0' || (letter >= ' ' && letter <= '~') ? letter : '?';
      fail(fmt::format(
               "values behind the filter {} ({})", filter, std::string(name, strnlen(name, 64))),
           "gzip, shuffle or none; write it again with h5repack -f GZIP=4");
    }
    filters_.push_back(filter);
  }
  fill_.assign(size, 0);
  if (is_chunked_ && H5Pget_fill_value(creation.get(), stored_.get(), fill_.data()) < 0)
    fill_.assign(size, 0);
}

std::string Hdf5File::text_of(const char* name) const {
  if (H5Aexists(set_.get(), name) <= 0) return "";
  const Hdf5Id attribute(H5Aopen(set_.get(), name, H5P_DEFAULT), H5Aclose);
  const Hdf5Id type(attribute ? H5Aget_type(attribute.get()) : -1, H5Tclose);
  const Hdf5Id space(attribute ? H5Aget_space(attribute.get()) : -1, H5Sclose);
  if (!type || !space || H5Tget_class(type.get()) != H5T_STRING ||
      H5Sget_simple_extent_npoints(space.get()) != 1)
    return "";
  if (H5Tis_variable_str(type.get()) > 0) {
    H5O_info_t info{};
    std::optional<std::string> text;
    if (H5Oget_info2(set_.get(), &info, H5O_INFO_BASIC) >= 0)
      text = hdf5_text(input_, user_block_, info.addr, name);
    if (!text) {
      fail(fmt::format("its attribute {} can't be read", name),
           "a complete file whose data set has at most 8 attributes");
    }
    return *text;
  }
  std::string text(std::min<std::size_t>(H5Tget_size(type.get()), 1U << 16), '\0');
  if (H5Tget_size(type.get()) != text.size() ||
      H5Aread(attribute.get(), type.get(), text.data()) < 0)
    return "";
  return text.c_str();
}

void Hdf5File::read_axes() {
  if (is_matlab_ && shape_.size() < 4)
    axes_ = shape_.size() == 2 ? "xy" : shape_[0] == 3 ? "cxy" : "zxy";
  const std::string tags = text_of("axistags");  // ilastik's, in VIGRA's JSON
  if (!tags.empty()) {
    const nlohmann::json parsed = nlohmann::json::parse(tags, nullptr, false);
    if (parsed.is_object() && parsed.contains("axes") && parsed["axes"].is_array()) {
      for (const auto& axis : parsed["axes"]) {
        const bool has_key = axis.is_object() && axis.contains("key") && axis["key"].is_string();
        axes_ += has_key ? axis["key"].get<std::string>() : "?";
      }
    }
    if (axes_.size() != shape_.size() || axes_.find_first_not_of("tczyx") != std::string::npos)
      fail("its axistags do not fit its shape", "one of t, c, z, y, x for each dimension");
  }
  if (H5Aexists(set_.get(), "element_size_um") > 0) {
    const Hdf5Id attribute(H5Aopen(set_.get(), "element_size_um", H5P_DEFAULT), H5Aclose);
    const Hdf5Id space(attribute ? H5Aget_space(attribute.get()) : -1, H5Sclose);
    const hssize_t count = space ? H5Sget_simple_extent_npoints(space.get()) : 0;
    std::array<double, 3> values{};
    if ((count == 2 || count == 3) &&
        H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, values.data() + (3 - count)) >= 0) {
      for (std::size_t i = 0; i < 3; ++i)
        spacing_um_[i] = std::isfinite(values[i]) && values[i] > 0 ? values[i] : 0;
    }
  }
}

void Hdf5File::read_chunk(const std::vector<hsize_t>& at,
                          std::vector<unsigned char>& values) const {
  values.resize(chunk_bytes_);
  if (!is_chunked_) {
    const std::lock_guard<std::mutex> lock(hdf5_mutex());
    const Hdf5Id from(H5Dget_space(set_.get()), H5Sclose);
    const auto axes = static_cast<int>(chunk_.size());
    const Hdf5Id into(H5Screate_simple(axes, chunk_.data(), nullptr), H5Sclose);
    std::vector<hsize_t> size = chunk_;  // less at the edge
    for (std::size_t i = 0; i < size.size(); ++i) size[i] = std::min(size[i], shape_[i] - at[i]);
    const std::vector<hsize_t> zero(size.size(), 0);
    H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, at.data(), nullptr, size.data(), nullptr);
    H5Sselect_hyperslab(into.get(), H5S_SELECT_SET, zero.data(), nullptr, size.data(), nullptr);
    if (H5Dread(set_.get(), stored_.get(), into.get(), from.get(), H5P_DEFAULT, values.data()) < 0)
      fail("its values can't be read", "a complete file; it may be truncated");
    return;
  }
  std::vector<unsigned char> packed;
  uint32_t skipped = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(hdf5_mutex());
    if (H5Dget_chunk_info_by_coord(set_.get(), at.data(), &skipped, &address, &bytes) < 0)
      fail("its chunks can't be found", "a complete file; it may be damaged");
  }
  if (address != HADDR_UNDEF && bytes > 0) {
    if (bytes > bytes_ || address > bytes_ - bytes)
      fail("a chunk lies beyond the end of the file", "a complete file; it may be truncated");
    packed.resize(bytes);
    if (user_block_ > 0) {  // its versions differ in whether addresses count it
      const std::lock_guard<std::mutex> lock(hdf5_mutex());
      if (H5Dread_chunk(set_.get(), H5P_DEFAULT, at.data(), &skipped, packed.data()) < 0)
        fail("a chunk can't be read", "a complete file");
    } else if (input_.read_at(address, packed.data(), packed.size()) != static_cast<int64_t>(bytes))
      fail("a chunk can't be read", "a complete file");
  }
  if (packed.empty()) {
    for (std::size_t i = 0; i < values.size(); i += fill_.size())
      std::memcpy(values.data() + i, fill_.data(), fill_.size());
  } else if (!decode(skipped, std::move(packed), values)) {
    fail(fmt::format("the chunk at {} can't be decoded", fmt::join(at, ", ")),
         fmt::format("{} bytes; the file may be damaged", chunk_bytes_));
  }
}

/// Removes the filters, the last one first. Returns false for damaged data.
bool Hdf5File::decode(unsigned skipped,
                      std::vector<unsigned char> packed,
                      std::vector<unsigned char>& values) const {
  for (std::size_t i = filters_.size(); i-- > 0;) {
    if (i < 32 && (skipped >> i & 1) != 0) continue;
    if (filters_[i] == H5Z_FILTER_FLETCHER32) {  // a sum behind the data; not checked
      if (packed.size() < 4) return false;
      packed.resize(packed.size() - 4);
    } else if (filters_[i] == H5Z_FILTER_SHUFFLE) {
      unshuffle(packed, type_.size());
    } else {
      // There may be a checksum, too.
      values.resize(chunk_bytes_ + 4);
      auto size = static_cast<uLongf>(values.size());
      if (::uncompress(values.data(), &size, packed.data(), static_cast<uLong>(packed.size())) !=
          Z_OK)
        return false;
      packed.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(size));
    }
  }
  if (packed.size() != chunk_bytes_) return false;
  values.swap(packed);
  return true;
}

}  // namespace cytra::io
