#include "inference/predictor/input.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config/schema.h"
#include "data/datamodule.h"
#include "data/loader/pipeline.h"
#include "data/sample/image_tensor.h"
#include "data/transforms/load_image.h"
#include "inference/predictor/input_reader.h"

namespace cytra::inference {
namespace {

using config::Node;

/// Whether a LoadImaged selects time points.
bool chooses_time(const Node& transform) {
  const Node* as_channels = transform.find("time_as_channels");
  if (as_channels != nullptr && as_channels->kind == config::Kind::boolean && as_channels->boolean)
    return true;
  for (const char* key : {"timepoint", "reader.T"}) {
    const Node* chosen = transform.find(key);
    if (chosen != nullptr && !chosen->is_null()) return true;
  }
  return false;
}

/// Removes the key from a transform's keys, together with its values in options that have one for
/// each key. Returns whether no key is left.
bool is_idle_without(Node& transform, const std::string& key) {
  const auto is_key = [&](const Node& node) {
    return node.kind == config::Kind::string && node.string == key;
  };
  Node* keys = transform.find("keys");
  if (keys == nullptr) return false;
  if (keys->kind != config::Kind::list) return is_key(*keys);
  const std::size_t count = keys->list.size();
  for (std::size_t i = count; i-- > 0;) {
    if (!is_key(keys->list[i])) continue;
    keys->list.erase(keys->list.begin() + static_cast<std::ptrdiff_t>(i));
    for (const char* name : {"mode",
                             "padding_mode",
                             "align_corners",
                             "dtype",
                             "argmax",
                             "to_onehot",
                             "threshold",
                             "rounding",
                             "names"}) {
      Node* option = transform.find(name);
      if (option != nullptr && option->kind == config::Kind::list && count > 1 &&
          option->list.size() == count)
        option->list.erase(option->list.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return keys->list.empty();
}

void set_spacing(const std::vector<double>& spacing_um, io::Geometry& geometry) {
  for (std::size_t d = 0; d < spacing_um.size(); ++d) {
    const std::size_t axis = 3 - spacing_um.size() + d;  // of Z, Y, X
    double& spacing = geometry.spacing_um[axis];
    if (spacing > 0) {
      for (auto* affine : {&geometry.affine, &geometry.qform_affine}) {
        for (std::size_t row = 0; row < 12; row += 4)
          (*affine)[row + 2 - axis] *= spacing_um[d] / spacing;
      }
    }
    spacing = spacing_um[d];
  }
}

/// Sets an affine where there is none, as a substitute: voxels are at multiples of the spacing.
void set_affine(io::Geometry& geometry) {
  if (geometry.has_affine()) return;
  geometry.sform = geometry.qform = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {  // Z, Y, X
    const double spacing = geometry.spacing_um[axis];
    geometry.affine[(2 - axis) * 5] = spacing > 0 ? spacing / 1000 : 1;
  }
}

/// Checks the memory for an image that is read as a whole, since a transform needs it so.
void expect_memory(const std::string& id, const data::Transform& transform, int64_t bytes) {
  const AvailableMemory memory = available_memory();
  if (bytes <= memory.bytes) return;
  throw MemoryError(
      "{}: {} takes the whole image, {} in memory, {} are left ({}); smaller images, or more "
      "memory, are needed",
      id,
      transform.name,
      format_bytes(static_cast<double>(bytes)),
      format_bytes(static_cast<double>(memory.bytes)),
      memory.limit);
}

/// Whether images have one size, whatever their channels.
bool have_one_size(const at::Tensor& image, const at::Tensor& other) {
  return image.sizes().slice(1) == other.sizes().slice(1);
}

/// Returns the list with an option set in the transforms that load images.
Node with_load_option(Node list, const char* option) {
  data::set_load_option(list, option, Node::make_boolean(true));
  return list;
}

}  // namespace

ModelInput::ModelInput(const at::Tensor& image)
    : shape(image.sizes().vec()), image_(image), shown_(image) {}

/// Reads the image for a transform that does not work by rows.
void ModelInput::read_whole(data::Sample& sample,
                            const std::string& image,
                            const data::Transform& transform) {
  if (!transform.is_bounded() || sample.folder.empty())
    expect_memory(sample.id, transform, reader_->bytes());
  shown_ = reader_->whole(false, sample.folder);
  sample.tensors[image] = reader_->has_changes() ? reader_->whole(true, sample.folder) : shown_;
  reader_.reset();
}

at::Tensor ModelInput::rows(int64_t first, int64_t count) const {
  return reader_ ? reader_->rows(first, count) : image_.narrow(1, first, count);
}

ModelInput ModelInput::part(int64_t first, int64_t count) const {
  ModelInput part = *this;
  part.shape[1] = count;
  if (loaded_shape.size() > 1)
    part.loaded_shape[1] = std::max<int64_t>(1, loaded_shape[1] * count / shape[1]);
  const auto cut = [&](at::Tensor& tensor) {
    if (tensor.defined() && tensor.sizes() == at::IntArrayRef(shape))
      tensor = tensor.narrow(1, first, count);
  };
  for (auto& [key, tensor] : part.sample.tensors) cut(tensor);
  cut(part.image_);
  if (part.shown_.defined() && part.shown_.size(1) == shape[1])
    part.shown_ = part.shown_.narrow(1, first, count);
  part.given_.reset();
  if (reader_) part.reader_ = reader_->part(first, count);
  return part;
}

at::Tensor ModelInput::loaded() const {
  const bool is_in_place = given_.defined() && given_.sizes() == at::IntArrayRef(shape);
  return (is_in_place ? given_ : shown(0, shape[1])).to(at::kFloat);
}

at::Tensor ModelInput::shown(int64_t first, int64_t count) const {
  return reader_ ? reader_->loaded(first, count) : shown_.narrow(1, first, count);
}

int64_t loading_bytes(const io::ImageInfo& info) {
  int64_t bytes = static_cast<int64_t>(io::size_of(info.dtype) + sizeof(float));
  for (const int64_t side : info.shape) bytes *= side;
  return bytes;
}

InputTransforms::InputTransforms(const Node& config, const std::string& left_out) {
  Node transforms = config;
  for (const char* unused : {"train", "test", "batch"})  // what they name may not be here
    if (Node* list = transforms.find_direct(unused)) *list = Node();
  const data::Split split = transforms.has("predict") && !transforms.at("predict").is_null()
                                ? data::Split::predict
                                : data::Split::valid;
  Node* list = transforms.find(data::name_of(split));
  if (list != nullptr) {
    if (!left_out.empty()) {
      std::erase_if(list->list,
                    [&](Node& transform) { return is_idle_without(transform, left_out); });
    }
    choose_time_ = std::ranges::any_of(list->list, chooses_time);
    for (const Node& transform : list->list) {
      const Node* axes = transform.find("axes");
      if (axes != nullptr && axes->kind == config::Kind::string) axes_ = axes->string;
    }
  }
  if (list != nullptr) *list = with_load_option(*list, "allow_planes");
  const auto lists = config::parse<data::SplitTransforms>(transforms);
  transforms_ = data::make_transforms(lists, split);
  if (transforms_.empty()) data::throw_no_transforms(lists, split);
  *list = with_load_option(*list, "lazy");
  lazy_ = data::make_transforms(config::parse<data::SplitTransforms>(transforms), split);
}

void InputTransforms::expect_channels(int64_t channels) {
  made_channels_ = data::take_colours(transforms_) ? channels : 0;
  channels_ = made_channels_ > 0 ? 0 : channels;
}

ModelInput InputTransforms::apply(data::Sample sample,
                                  const std::string& image,
                                  const std::vector<double>& spacing_um,
                                  int64_t by_rows_from) const {
  constexpr int64_t kLarge = int64_t{1} << 22;  // values
  ModelInput input = apply(std::move(sample), image, spacing_um, by_rows_from, true);
  const at::IntArrayRef loaded = input.loaded_shape, own = input.shape;
  if (!input.reader_ &&
      std::accumulate(loaded.begin(), loaded.end(), int64_t{1}, std::multiplies{}) > kLarge)
    release_unused_memory();
  const bool has_moved = input.sample.geometry().affine != input.loaded_geometry.affine;
  input.moves_back = tracks_ && (has_moved || own.slice(1) != loaded.slice(1));
  return input;
}

std::vector<int64_t> InputTransforms::shape_of(data::Sample sample,
                                               const std::string& image) const {
  // What is not by rows needs the values of those before it.
  const bool scans = !std::ranges::all_of(lazy_, [&](const auto& transform) {
    return transform->loads() || transform->by_rows(image, [](const data::Rows&) {});
  });
  return apply(std::move(sample), image, {}, -1, scans).shape;
}

ModelInput InputTransforms::apply(data::Sample sample,
                                  const std::string& image,
                                  const std::vector<double>& spacing_um,
                                  int64_t by_rows_from,
                                  bool scans) const {
  ModelInput input;
  sample.image = image;
  sample.channels = channels_;
  const bool is_given = sample.has(image);
  if (const auto given = sample.tensors.find(image); given != sample.tensors.end()) {
    input.loaded_geometry = sample.geometry();
    input.loaded_shape = given->second.sizes().vec();
    input.given_ = given->second;
  }
  const auto take_large = [&] {
    const auto waiting = sample.unread.find(image);
    if (waiting == sample.unread.end() ||
        loading_bytes(waiting->second.reader->info()) <= by_rows_from)
      return;
    input.reader_ = std::make_shared<ModelInput::Reader>(waiting->second);
    sample.unread.erase(waiting);
  };
  take_large();
  Rng unused(0);
  for (const auto& transform : by_rows_from < INT64_MAX ? lazy_ : transforms_) {
    if (is_given && transform->loads()) continue;
    const bool is_by_rows = bool(transform->by_rows(image, [](const data::Rows&) {}));
    input.is_in_place = input.is_in_place && (transform->loads() || is_by_rows);
    if (input.reader_) {
      const auto scan = [&](const data::Rows& look) {
        if (scans) input.reader_->scan(look);
      };
      if (data::RowChange change = transform->by_rows(image, scan)) {
        input.reader_->add(std::move(change), transform);
        continue;
      }
      input.read_whole(sample, image, *transform);
    }
    const bool is_loaded = sample.has(image);
    const at::Tensor before = is_loaded ? sample.at(image) : at::Tensor();
    const auto affine = sample.geometry().affine;
    at::Tensor& shown = input.shown_;
    // Without an affine it is unknown whether voxels move, so the copy for viewing is always
    // transformed, too.
    const bool has_place = affine != decltype(affine){};
    const bool may_move = is_loaded && !has_place && !is_by_rows;
    const bool has_other_values = shown.defined() && (may_move || !shown.is_same(before));
    data::Sample eye;  // a copy with the values for viewing, in case the image is moved
    if (has_other_values) eye = sample;
    data::apply(*transform, sample, unused);
    if (!is_loaded) {
      for (auto& [key, geometry] : sample.geometries) {
        set_spacing(spacing_um, geometry);
        if (tracks_) set_affine(geometry);
      }
      input.loaded_geometry = sample.geometry();
    }
    take_large();
    if (input.reader_) {
      input.loaded_shape = input.reader_->shape();
      continue;
    }
    if (!is_loaded && !sample.has(image)) continue;  // made of other images later
    const at::Tensor& now = sample.at(image);
    if (!is_loaded) input.loaded_shape = now.sizes().vec();
    bool is_moved = !shown.defined() || !have_one_size(shown, now) ||
                    (is_loaded && affine != sample.geometry().affine);
    if ((is_moved || may_move) && has_other_values) {
      eye.tensors[image] = shown;
      if (may_move) set_affine(eye.geometries[image]);
      const auto placed = eye.geometry().affine;
      data::apply(*transform, eye, unused);
      if (may_move && placed != eye.geometry().affine) is_moved = true;
      if (is_moved) shown = eye.at(image);
      if (is_moved && !have_one_size(shown, now)) shown = now;  // cropped by its values
    } else if (is_moved) {
      shown = now;
    }
  }
  if (input.reader_) {
    input.shape = input.reader_->shape(made_channels_);
  } else {
    input.image_ = sample.at(image);
    input.shape = input.image_.sizes().vec();
  }
  input.sample = std::move(sample);
  return input;
}

}  // namespace cytra::inference
