// LoadImaged: files to tensors, channel first. Source:
// monai.transforms.LoadImaged(ensure_channel_first=True), cyto_dl.image.io.MonaiBioReader.
#include "data/transforms/load_image.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"
#include "config/schema.h"
#include "data/sample/annotations.h"
#include "data/sample/image_tensor.h"
#include "data/sample/per_key.h"
#include "data/sample/same_grid.h"
#include "data/sample/sample.h"
#include "io/grey.h"
#include "io/reader.h"

namespace cytra::data {
namespace {

/// The options of CytoDL's MonaiBioReader.
struct ReaderOptions {
  std::string dimension_order_out;
  std::vector<int64_t> channel;
  std::optional<int64_t> timepoint, z;
  void visit(auto& v) {
    v("dimension_order_out",
      dimension_order_out,
      "axes of the image",
      {"", "YX", "CYX", "ZYX", "CZYX"});
    v("C", channel, "channels, from 0", 0, 1e9);
    v("T", timepoint, "time point, from 0", 0, 1e9);
    v("Z", z, "an option of MonaiBioReader: not supported");
    v("dask_load", config::Unused{}, "what is asked for is all that is read");
  }
  void check() const {
    if (z) throw ConfigError("Z: one plane of a stack can't be chosen, leave it out");
  }
};

struct LoadOptions {
  std::vector<std::string> keys;
  int64_t spatial_dims = 2;
  bool allow_missing_keys = false, allow_planes = false, allow_stacks = false;
  bool time_as_channels = false, lazy = false;
  std::vector<int64_t> channel;
  std::optional<int64_t> scene, resolution, timepoint;
  std::optional<std::string> axes;
  config::Node reader, annotations, class_names;
  void visit(auto& v) {
    v("keys", keys, "samples' keys to load", config::required);
    v("spatial_dims", spatial_dims, "2: planes (C,H,W); 3: stacks (C,D,H,W)", 2, 3);
    v("allow_missing_keys", allow_missing_keys, "skip a key the sample does not have");
    v("allow_planes", allow_planes, "a plane is a stack of one where spatial_dims is 3");
    v("allow_stacks", allow_stacks, "a stack is loaded as one where spatial_dims is 2");
    v("channel", channel, "channels to load, from 0; null: all", 0, 1e9);
    v("scene", scene, "image of a file that holds several; null: the first", 0, 1e9);
    v("resolution", resolution, "level of a pyramid; null: 0, the finest", 0, 1e9);
    v("timepoint", timepoint, "null: the only one", 0, 1e9);
    v("axes", axes, "axes of the files; data.axes has priority; null: as the files say");
    v("time_as_channels", time_as_channels, "time points are channels, as in 4D NIfTI of MONAI");
    v("lazy",
      lazy,
      "read only what the crop that follows needs: for images larger than memory; not cached");
    v("reader",
      reader,
      "MONAI's name of one, or MonaiBioReader with dimension_order_out, C, T; files tell their "
      "format");
    v("annotations",
      annotations,
      "what annotations become: instances, classes, mask, channels or boxes; {KEY: ...} of each "
      "key; null: as the task needs it");
    v("class_names",
      class_names,
      "names of the classes of annotations, or {KEY: [...]} for each key");
    using config::Unused;
    KeyOptions::visit_dtype(v);
    v("ensure_channel_first", Unused{}, "channels are first");
    for (const char* key : {"image_only",
                            "simple_keys",
                            "meta_keys",
                            "meta_key_postfix",
                            "prune_meta_pattern",
                            "prune_meta_sep",
                            "overwriting"})
      v(key, Unused{}, "each image keeps its own geometry");
    v("expanduser", Unused{}, "paths are taken as they are");
  }
  void check() {
    if (axes) io::check_axes(*axes);
    for (const std::string& key : keys)
      if (kind_of(key) != nullptr) io::target_kind(kind_of(key)->as<std::string>());
    if (reader.kind != config::Kind::list) return take(reader);
    for (const config::Node& one : reader.list) take(one);
  }

  /// The target that annotations become. Throws: DataError naming `path` where no option says it
  /// for the key.
  AnnotationTarget target_of(const std::string& key, const std::string& path) const {
    const config::Node* kind = kind_of(key);
    if (kind == nullptr) {
      throw DataError(
          "{}: annotations, expected an image, or what they become by LoadImaged's `annotations`: "
          "{}",
          path,
          fmt::join(io::kTargetKinds, ", "));
    }
    AnnotationTarget target{io::target_kind(kind->as<std::string>()), {}};
    const config::Node* names = of_key(class_names, key);
    if (names != nullptr)
      for (const config::Node& name : names->list)
        target.class_names.push_back(name.as<std::string>());
    return target;
  }

 private:
  static const config::Node* of_key(const config::Node& option, const std::string& key) {
    const config::Node* own = option.is_map() ? option.find_direct(key) : &option;
    return own == nullptr || own->is_null() ? nullptr : own;
  }
  const config::Node* kind_of(const std::string& key) const { return of_key(annotations, key); }
  void take(const config::Node& one) {
    if (one.is_null()) return;
    const config::Node* target = one.is_map() ? one.find_direct("_target_") : &one;
    if (target == nullptr) throw ConfigError("reader: expected `_target_: MonaiBioReader`");
    const std::string path = target->as<std::string>();
    const std::string name = path.substr(path.rfind('.') + 1);
    const std::vector<std::string> names{"MonaiBioReader",
                                         "ITKReader",
                                         "NibabelReader",
                                         "NumpyReader",
                                         "PILReader",
                                         "PydicomReader",
                                         "NrrdReader"};
    if (std::ranges::find(names, name) == names.end())
      throw ConfigError("reader: there is no '" + path + "'." + suggestion(name, names));
    if (!one.is_map()) return;
    const auto options = config::parse<ReaderOptions>(one);
    const std::string& axes = options.dimension_order_out;
    if (axes == "ZYX" || axes == "CZYX") spatial_dims = 3;
    if ((axes == "YX" || axes == "CYX") && spatial_dims == 3) {
      throw ConfigError("reader.dimension_order_out: " + axes +
                        ", expected ZYX or CZYX: spatial_dims is 3");
    }
    if (!options.channel.empty()) channel = options.channel;
    if (options.timepoint) timepoint = options.timepoint;
  }
};

/// Checks that the parts of an image are at one place.
void check_same_place(const std::string& first,
                      const io::Geometry& a,
                      const std::string& path,
                      const io::Geometry& b) {
  const auto differs = [](double one, double other) {
    return std::abs(one - other) > 1e-3 * (1 + std::abs(one));
  };
  for (std::size_t i = 0; i < 3; ++i) {
    if (differs(a.spacing_um[i], b.spacing_um[i])) {
      throw DataError("{}: voxels of {} um (z,y,x), expected {} as its other channel {}",
                      path,
                      fmt::join(b.spacing_um, " x "),
                      fmt::join(a.spacing_um, " x "),
                      first);
    }
  }
  for (std::size_t i = 0; i < 12; ++i) {
    if (differs(a.affine[i], b.affine[i])) {
      throw DataError(path + ": another affine than its other channel " + first +
                      ", expected one place in the world");
    }
  }
}

class LoadImaged final : public Transform {
 public:
  using Options = LoadOptions;
  explicit LoadImaged(const Options& options) : options_(options) {}

  bool loads() const override { return true; }

  void apply(Sample& sample, Rng&) const override {
    for (const std::string& key : options_.keys) {
      const auto source = sample.sources.find(key);
      if (source != sample.sources.end() && io::is_annotation_path(source->second.path)) {
        paint(sample, key, source->second);
      } else if (source != sample.sources.end() && is_lazy(source->second)) {
        const ImageRequest& image = open(sample, key, source->second);
        sample.geometries[key] = image.reader->info().geometry;
      } else if (source != sample.sources.end()) {
        sample.tensors[key] = load(sample, key);
      } else if (!options_.allow_missing_keys) {
        throw_missing(sample, key);
      }
      if (source != sample.sources.end()) source->second.selection = selection_of(source->second);
      const bool is_coming = sample.sources.count(sample.image) > 0 || sample.has(sample.image);
      if (!is_coming && sample.has(key)) sample.image = key;
    }
    expect_no_copies(sample);
    settle_grids(sample);
  }

 private:
  [[noreturn]] static void throw_missing(const Sample& sample, const std::string& key) {
    const auto text = sample.columns.find(key);
    if (text != sample.columns.end()) {
      throw DataError("{}: column '{}' holds '{}', expected the path of an image",
                      sample.id,
                      key,
                      text->second);
    }
    throw DataError(sample.id +
                    (sample.tensors.count(key) > 0
                         ? ": '" + key + "' is in memory, LoadImaged is for files: leave it out"
                         : ": the data set has no column '" + key + "' that LoadImaged asks for"));
  }

  /// Whether the image can be read later. Channels in several files or time points are joined at
  /// once.
  bool is_lazy(const Source& source) const {
    return options_.lazy && source.more.empty() && !source.time_is_channel &&
           !options_.time_as_channels;
  }

  /// Paints annotations in the grid of the image that they belong to.
  void paint(Sample& sample, const std::string& key, const Source& source) const {
    const Source* image = nullptr;
    for (const auto& [name, other] : sample.sources) {
      const bool is_first = image == nullptr || name == sample.image;
      if (is_first && !io::is_annotation_path(other.path)) image = &other;
    }
    if (image == nullptr) {
      throw DataError(source.path +
                      ": annotations, expected the image that they belong to beside them");
    }
    io::Selection selection = selection_of(*image);
    if ((image->time_is_channel || options_.time_as_channels) && selection.timepoint < 0)
      selection.timepoint = 0;
    const io::ImageInfo info = io::open_image(image->path, selection)->info();
    sample.tensors[key] = paint_target(source.path,
                                       options_.target_of(key, source.path),
                                       image->path,
                                       info,
                                       dims_of(info.shape[1], image->path));
    sample.geometries[key] = info.geometry;
  }

  /// Whether a grey image that was saved in colours is meant as one channel.
  bool takes_grey(const Sample& sample, const std::string& key) const {
    const Source& source = sample.sources.at(key);
    return key == sample.image && sample.channels == 1 && source.more.empty() &&
           selection_of(source).channels.empty();
  }

  const ImageRequest& open(Sample& sample, const std::string& key, const Source& source) const {
    std::shared_ptr<const io::ImageReader> reader =
        io::open_image(source.path, selection_of(source));
    if (takes_grey(sample, key)) reader = io::grey_of(std::move(reader), source.path);
    const auto& shape = reader->info().shape;
    const int64_t dims = dims_of(shape[1], source.path);
    sample.tensors.erase(key);
    return sample.unread[key] = {
               reader, io::within({}, shape, source.path), dims, source.path, sample.fill_nan};
  }

  /// The dimensions of an image of so many planes.
  int64_t dims_of(int64_t planes, const std::string& path) const {
    if (planes > 1 && options_.allow_stacks) return 3;
    if (planes > 1 || !options_.allow_planes) check_planes(planes, options_.spatial_dims, path);
    return options_.spatial_dims;
  }

  /// The selection of the data set, else that of the options.
  io::Selection selection_of(const Source& source) const {
    io::Selection selection = source.selection;
    if (selection.channels.empty()) selection.channels = options_.channel;
    if (selection.scene < 0) selection.scene = options_.scene.value_or(-1);
    if (!source.has_level && selection.level == 0)
      selection.level = options_.resolution.value_or(0);
    if (selection.timepoint < 0) selection.timepoint = options_.timepoint.value_or(-1);
    if (selection.axes.empty()) selection.axes = options_.axes.value_or("");
    return selection;
  }

  at::Tensor load(Sample& sample, const std::string& key) const {
    const Source& source = sample.sources.at(key);
    io::Geometry& geometry = sample.geometries[key];
    const bool is_grey = takes_grey(sample, key);
    io::Selection selection = selection_of(source);
    std::vector<at::Tensor> parts;
    const auto read = [&](const std::string& path) {
      io::Image image = io::read_image(path, selection);
      if (is_grey) io::make_grey(image, path);
      const int64_t dims = dims_of(image.shape[1], path);
      const io::Geometry own = image.geometry;
      at::Tensor tensor = to_tensor(std::move(image), dims, path);
      make_finite(tensor, sample.fill_nan, path);
      if (parts.empty()) {
        geometry = own;
      } else {
        check_same_place(source.path, geometry, path, own);
        if (tensor.sizes().slice(1) != parts[0].sizes().slice(1)) {
          throw DataError("{}: {} voxels, expected {} as its other channel {}",
                          path,
                          fmt::join(tensor.sizes().slice(1), "x"),
                          fmt::join(parts[0].sizes().slice(1), "x"),
                          source.path);
        }
      }
      parts.push_back(std::move(tensor));
    };
    if (!source.more.empty()) return load_files(source, selection, read, parts);
    if ((source.time_is_channel || options_.time_as_channels) && selection.timepoint < 0) {
      const std::vector<int64_t> channels = std::move(selection.channels);
      selection.channels.clear();
      selection.timepoint = 0;
      const int64_t count = io::open_image(source.path, selection)->info().timepoints;
      for (; selection.timepoint < count; ++selection.timepoint) read(source.path);
      return chosen(joined(parts), channels, source.path);
    }
    read(source.path);
    return parts[0];
  }

  /// Reads channels, which are numbered over all files.
  at::Tensor load_files(const Source& source,
                        io::Selection& selection,
                        const auto& read,
                        std::vector<at::Tensor>& parts) const {
    const std::vector<int64_t> channels = std::move(selection.channels);
    selection.channels.clear();
    read(source.path);
    for (const std::string& path : source.more) read(path);
    return chosen(joined(parts), channels, source.path);
  }

  static at::Tensor joined(std::vector<at::Tensor>& parts) {
    if (parts.size() == 1) return parts[0];
    for (at::Tensor& part : parts) {
      if (part.scalar_type() != parts[0].scalar_type()) {
        for (at::Tensor& each : parts) each = each.to(at::kFloat);
      }
    }
    return at::cat(parts);
  }

  static at::Tensor chosen(const at::Tensor& image,
                           const std::vector<int64_t>& channels,
                           const std::string& path) {
    if (channels.empty()) return image;
    std::vector<at::Tensor> parts;
    for (const int64_t channel : channels) {
      if (channel >= image.size(0)) {
        throw DataError("{}: no channel {}, expected 0 to {}", path, channel, image.size(0) - 1);
      }
      parts.push_back(image.narrow(0, channel, 1));
    }
    return at::cat(parts);
  }
  Options options_;
};
CYTRA_REGISTER(Transform, LoadImaged, "LoadImaged");

}  // namespace

bool loads_images(const config::Node& transform) {
  const config::Node* target = transform.is_map() ? transform.find_direct("_target_") : nullptr;
  return target != nullptr && target->kind == config::Kind::string &&
         config::own_name(target->string) == "LoadImaged";
}

std::vector<std::string> loaded_keys(const config::Node& transform) {
  const config::Node* keys = loads_images(transform) ? transform.find_direct("keys") : nullptr;
  if (keys == nullptr || keys->is_null()) return {};
  if (keys->kind != config::Kind::list) return {keys->as<std::string>()};
  return keys->as<std::vector<std::string>>();
}

void set_load_option(config::Node& list, const std::string& option, const config::Node& value) {
  for (config::Node& transform : list.list)
    if (loads_images(transform)) transform.set(option, value);
}

config::Node any_image_load(const std::string& key) {
  config::Node node = config::Node::make_map();
  node.set("_target_", config::Node::make_string("LoadImaged"));
  node.set("keys", config::Node::make_list({config::Node::make_string(key)}));
  node.set("spatial_dims", config::Node::make_integer(3));
  return node;
}

}  // namespace cytra::data
