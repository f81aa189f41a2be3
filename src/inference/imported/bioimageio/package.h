#pragma once
// The description of a package of bioimage.io, a model of format 0.4 or 0.5
// (github.com/bioimage-io/spec-bioimage-io). One of 0.4 is read as one of 0.5, as bioimageio.spec
// converts it.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "config/node.h"

namespace cytra::inference {

/// Throws: ConfigError with the place.
[[noreturn]] void refuse_package(const config::Node& node, const std::string& what);

/// An axis of a tensor.
struct PackageAxis {
  char letter = 'o';  // b, c, z, y, x; o: another one, of size 1
  std::string id;
  int64_t size = 0;  // 0: min + n step
  int64_t min = 1, step = 1;
  int64_t halo = 0;
  double scale = 1, offset = 0;  // of an output: its size by the input's
  const config::Node* node = nullptr;
};

struct PackageTensor {
  std::string id;
  std::vector<PackageAxis> axes;
  config::Node operations = config::Node::make_list();  // of 0.5, with our names of axes
  std::string test;                                     // the file; "": none
  const config::Node* node = nullptr;

  const PackageAxis* find(char letter) const {
    for (const PackageAxis& axis : axes)
      if (axis.letter == letter) return &axis;
    return nullptr;
  }
};

/// The description and the files beside it.
class Package {
 public:
  /// Reads the description of a folder, or the file itself, and checks the files by their sha256.
  /// Throws: ConfigError, DataError.
  explicit Package(const std::string& path);
  const config::Node& root() const { return root_; }
  const std::string& file() const { return file_; }
  /// The path of a file of the package; "" for an address, and for one that is not there. Throws:
  /// ConfigError for a path that leads out of the folder.
  std::string path_of(const config::Node& source) const;
  /// The only input. It must not outlive the package, nor must the output. Throws: ConfigError for
  /// several, and for what the input of a model of images does not have.
  PackageTensor input() const;
  /// The first output. Throws: ConfigError.
  PackageTensor output(const PackageTensor& input) const;

 private:
  void expect_different_names() const;
  void expect_checksums(const config::Node& node) const;
  PackageTensor tensor(const config::Node& node, const PackageTensor* input) const;
  static void read_axes(PackageTensor& tensor, const PackageTensor* input);
  static void refer(const PackageTensor& tensor, PackageAxis& axis, const config::Node& reference);
  static void read_old_axes(PackageTensor& tensor, bool is_input);
  void add_operation(PackageTensor& tensor,
                     const config::Node& step,
                     const PackageTensor* input) const;

  std::string file_;
  std::filesystem::path folder_;
  config::Node root_;
  bool is_old_ = false;
};

/// Between the axes of a tensor and (N,C,[D,]H,W).
class AxisOrder {
 public:
  /// Throws: ConfigError for axes that are no image's.
  explicit AxisOrder(const PackageTensor& tensor);
  int64_t spatial_dims() const { return std::ssize(own_) - 2; }
  /// "bcyx" or "bczyx".
  const std::string& own() const { return own_; }
  bool is_own() const { return letters_ == own_; }
  bool has_batch() const { return letters_.find('b') != std::string::npos; }
  /// (N,C,[D,]H,W) as the tensor's axes; one image where those have no batch.
  Tensor to_package(Tensor windows) const;
  /// The reverse. Throws: DataError for a tensor with another number of axes.
  Tensor to_own(Tensor tensor) const;

 private:
  std::string letters_, own_;
};

}  // namespace cytra::inference
