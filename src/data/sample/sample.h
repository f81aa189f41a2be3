#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/rng.h"
#include "io/reader.h"

namespace cytra::data {

/// The file of an image, and which image of the file. LoadImaged's options may choose what is not
/// chosen here.
struct Source {
  std::string path;
  io::Selection selection;
  bool has_level = false;              // the selection's level 0 was chosen
  bool time_is_channel = false;        // as the Decathlon's 4D images store channels
  std::vector<std::string> more = {};  // files with the image's further channels
};

/// An opened image, and the part of it that is wanted so far.
struct ImageRequest {
  std::shared_ptr<const io::ImageReader> reader;
  io::Region region;  // every size set
  int64_t spatial_dims = 2;
  std::string path;
  std::optional<double> fill_nan = {};
};

/// The treatment of an image that is not on the grid of the sample's image: data.on_mismatch.
enum class Mismatch { error, resample, ignore };
extern const std::vector<std::string> kMismatches;  // their names
Mismatch mismatch_of(const std::string& name);

/// One image with what belongs to it. Starts as sources; LoadImaged turns them into tensors.
struct Sample {
  std::map<std::string, Source> sources;
  std::map<std::string, ImageRequest> unread;  // read into tensors when first used
  /// key -> (C,[D,]H,W); float32, or the type on file until at() is called.
  std::map<std::string, at::Tensor> tensors;
  /// The place of each image in the world, by key; it follows transforms that move voxels.
  /// Missing: unknown.
  std::map<std::string, io::Geometry> geometries;
  /// The key of the image that the others belong to; "": the first that is loaded.
  std::string image = {};
  Mismatch on_mismatch = Mismatch::error;
  /// The channels that a model takes of `image`; 0: not known. Of one, colours that are grey are
  /// it.
  int64_t channels = 0;
  std::optional<double> fill_nan;  // in place of values that are NaN or infinite; none: an error
  std::string id;                  // names the sample in messages: the first path
  std::string folder = {};         // as ops::room_for(): what is large lies there
  /// Other data about the sample: cells of a manifest that are no images.
  std::map<std::string, std::string> columns = {};
  double weight = 1;  // how often it is drawn by a weighted sampler; >= 0
  int64_t draw = 0;   // the number of this draw of the image, below Pipeline::draws()
  /// The tensor of a key, as float32. Throws: DataError with the nearest existing key.
  at::Tensor& at(const std::string& key);
  /// The tensor of a key in its stored type, for transforms that only move voxels. Throws: what
  /// at() throws.
  at::Tensor& stored(const std::string& key);
  /// The geometry of `image`; where it is missing, of the first key.
  const io::Geometry& geometry() const;
  /// The file of an image, for messages; the sample's id where it has none.
  const std::string& file_of(const std::string& key) const;
  bool has(const std::string& key) const { return tensors.count(key) + unread.count(key) > 0; }
  /// The size (Y, X or Z, Y, X), also of an image that is not read yet.
  std::vector<int64_t> size(const std::string& key);
  /// Crops an image to a box, given per spatial dimension, whose start is inside the image; parts
  /// beyond it are cut off.
  void crop(const std::string& key,
            const std::vector<int64_t>& start,
            const std::vector<int64_t>& size);
};

/// Throws: DataError that names the nearest existing key.
[[noreturn]] void throw_missing(const std::map<std::string, at::Tensor>& tensors,
                                const std::string& key,
                                const std::string& id);

/// Throws: DataError where an image has another number of channels than its model.
void expect_channels(Sample& sample, const std::string& key, int64_t channels);

/// Throws: DataError where the file of the sample's image is the target, too.
void expect_no_copies(const Sample& sample);

/// Goes through an image that is read by rows of its outer axis: all of them, in order, each
/// (C,count,...) float32.
using Rows = std::function<void(const at::Tensor& rows)>;
using Scan = std::function<void(const Rows& look)>;
/// The change of some rows, (C,count,...) float32; it is the same for all rows.
using RowChange = std::function<at::Tensor(const at::Tensor& rows)>;

/// A step of the data pipeline: MONAI's dictionary transforms by name and argument. Thread: apply()
/// must be const-safe.
struct Transform {
  static constexpr const char* kKind = "transform";
  virtual ~Transform() = default;
  std::string name;  // for messages, e.g. "RandFlipd"
  std::string text;  // its whole configuration, and the content of its file, where it has one:
                     // transforms with equal texts do the same
  virtual void apply(Sample& sample, Rng& rng) const = 0;
  /// Makes a change that does apply() by rows, with the same values, for an image under `key` that
  /// is larger than memory. Values that depend on the whole image come from one scan or more.
  /// Null: the transform needs the whole image.
  virtual RowChange by_rows(const std::string& /*key*/, const Scan& /*scan*/) const { return {}; }
  /// Whether it is random. Random transforms are applied at each draw; those before the first
  /// random one are applied once per image.
  virtual bool is_random() const { return false; }
  /// Whether it takes little memory besides an image and its result, which lies in a file where it
  /// is large (Sample::folder).
  virtual bool is_bounded() const { return false; }
  /// Whether it reads images from files; images in memory do not need it.
  virtual bool loads() const { return false; }
  /// Whether it makes the channels that a model takes of those that an image has.
  virtual bool takes_colours() const { return false; }
  /// The number of draws per image (MONAI's num_samples).
  virtual int64_t num_samples() const { return 1; }
};

using Transforms = std::vector<std::shared_ptr<Transform>>;
/// Whether one of them makes the channels that a model takes.
bool take_colours(const Transforms& transforms);

}  // namespace cytra::data
