#pragma once
#include <string>

namespace cytra::io {

/// The files of a ZIP archive, unpacked into a folder of their own below the system's for temporary
/// files; the folder goes with the object. For models in several files: a bundle of MONAI, a
/// package of bioimage.io.
class UnpackedArchive {
 public:
  /// Throws: DataError for what is no whole archive, for a file with another checksum, for names
  /// that lead out of the folder, and for more than 64 MiB and 20 times the archive's bytes;
  /// IoError.
  explicit UnpackedArchive(const std::string& path);
  ~UnpackedArchive();
  UnpackedArchive& operator=(UnpackedArchive&&) = delete;
  /// The folder; where all files are in one folder of the archive, that.
  const std::string& folder() const { return inner_; }

 private:
  std::string folder_, inner_;
};

}  // namespace cytra::io
