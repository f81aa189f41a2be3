#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/rng.h"
#include "io/reader.h"

namespace cytra::data {

/// The file of an image, and which image of it. What is not chosen here, LoadImaged's options may
/// choose.
struct Source {
  std::string path;
  io::Selection selection;
  bool has_level = false;              // the selection's level 0 was chosen
  bool time_is_channel = false;        // as the Decathlon's 4D images store channels
  std::vector<std::string> more = {};  // files with the image's further channels
};

/// An opened image, and the part of it that is wanted by now.
struct ImageRequest {
  std::shared_ptr<const io::ImageReader> reader;
  io::Region region;  // every size set
  int64_t spatial_dims = 2;
  std::string path;
};

/// What becomes of an image that does not lie on the sample's image: data.on_mismatch.
enum class Mismatch { error, resample, ignore };
extern const std::vector<std::string> kMismatches;  // their names
Mismatch mismatch_of(const std::string& name);

/// One image with what belongs to it. Starts as sources; LoadImaged turns them into tensors.
struct Sample {
  std::map<std::string, Source> sources;
  std::map<std::string, ImageRequest> unread;  // tensors as soon as somebody asks for them
  /// key -> (C,[D,]H,W); float32, or the type on file until somebody asks for numbers.
  std::map<std::string, at::Tensor> tensors;
  /// Where each image lies, by key; it follows whatever moves its voxels. Not there: unknown.
  std::map<std::string, io::Geometry> geometries;
  /// The key of the image that the others belong to; "": the first that is loaded.
  std::string image = {};
  Mismatch on_mismatch = Mismatch::error;
  std::string id;  // names the sample in messages: the first path
  /// What else the data set says of it: cells of a manifest that are no images.
  std::map<std::string, std::string> columns = {};
  double weight = 1;  // how often it is drawn, for a sampler that weighs; >= 0
  int64_t draw = 0;   // which of its image's draws this is: below Pipeline::draws()
  /// The tensor of a key, as float32. Throws: DataError with the nearest key there is.
  at::Tensor& at(const std::string& key);
  /// As it is stored: for what only moves voxels, at the least cost. Throws: as at().
  at::Tensor& stored(const std::string& key);
  /// Of `image`; where it is not there, of the first key.
  const io::Geometry& geometry() const;
  /// The file of an image, for messages; the sample's id where it has none.
  const std::string& file_of(const std::string& key) const;
  bool has(const std::string& key) const { return tensors.count(key) + unread.count(key) > 0; }
  /// Y, X or Z, Y, X; of an image that is not read yet, too.
  std::vector<int64_t> size(const std::string& key);
  /// The box out of an image, per spatial dimension, whose start lies in it; what reaches beyond it
  /// is cut off.
  void crop(const std::string& key,
            const std::vector<int64_t>& start,
            const std::vector<int64_t>& size);
};

/// DataError that names the nearest key there is.
[[noreturn]] void throw_missing(const std::map<std::string, at::Tensor>& tensors,
                                const std::string& key,
                                const std::string& id);

/// Throws: DataError where an image has other channels than the model that it is for.
void expect_channels(Sample& sample, const std::string& key, int64_t channels);

/// Goes through an image that is read by rows of its outer axis: all of them, in order, each
/// (C,count,...) float32.
using Rows = std::function<void(const at::Tensor& rows)>;
using Scan = std::function<void(const Rows& look)>;
/// What becomes of some rows, (C,count,...) float32, whichever they are.
using RowChange = std::function<at::Tensor(const at::Tensor& rows)>;

/// A step of the data pipeline: MONAI's dictionary transforms by name and argument. Thread: apply()
/// must be const-safe.
struct Transform {
  static constexpr const char* kKind = "transform";
  virtual ~Transform() = default;
  std::string name;  // for messages, e.g. "RandFlipd"
  std::string text;  // its whole configuration: equal texts do the same
  virtual void apply(Sample& sample, Rng& rng) const = 0;
  /// For an image under `key` that is larger than memory: apply() by rows, with the same values.
  /// What depends on the whole image comes from one scan or more. Null: it takes the whole image.
  virtual RowChange by_rows(const std::string& /*key*/, const Scan& /*scan*/) const { return {}; }
  /// Random ones are applied anew at each draw; the ones before the first random one are applied
  /// once per image.
  virtual bool is_random() const { return false; }
  /// Whether it reads images from files, which those that are in memory need not.
  virtual bool loads() const { return false; }
  /// Draws per image (MONAI's num_samples).
  virtual int64_t num_samples() const { return 1; }
};

using Transforms = std::vector<std::shared_ptr<Transform>>;

}  // namespace cytra::data
