#include "io/annotations/paint.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/pixels/format.h"

namespace cytra::io {

const std::vector<std::string> kTargetKinds{"instances", "classes", "mask", "channels", "boxes"};

TargetKind target_kind(const std::string& name) {
  const auto found = std::ranges::find(kTargetKinds, name);
  if (found != kTargetKinds.end()) return static_cast<TargetKind>(found - kTargetKinds.begin());
  throw ConfigError("annotations: '{}', expected {}.{}",
                    name,
                    fmt::join(kTargetKinds, ", "),
                    suggestion(name, kTargetKinds));
}

namespace {

constexpr int64_t kMostPainted = int64_t{1} << 33;  // pixels, of one file
constexpr std::size_t kMostCrossings = std::size_t{1} << 28;
constexpr int64_t kMostLayers = 64;

class Painter {
 public:
  Painter(const std::string& path, const AnnotatedImage& image, Image& target)
      : path_(path),
        image_(image),
        pixels_(reinterpret_cast<int32_t*>(target.pixels.data())),
        plane_(image.height * image.width) {}

  void paint(const Annotation& object, int64_t channel, int32_t value) {
    for_runs(object, [&](int64_t z, int64_t first, int64_t count) {
      int32_t* begin = pixels_ + (channel * image_.depth + z) * plane_ + first;
      std::fill(begin, begin + count, value);
    });
  }

 private:
  /// Calls run(z, first, count) for pixels of a plane, row by row.
  void for_runs(const Annotation& object, const auto& run) {
    const int64_t from = object.plane < 0 ? 0 : object.plane,
                  to = object.plane < 0 ? image_.depth : from + 1;
    const auto in_planes = [&](int64_t first, int64_t count) {
      if ((painted_ += count * (to - from)) > kMostPainted)
        throw DataError(path_ + ": objects that lie over each other too often, expected fewer");
      for (int64_t z = from; z < to; ++z) run(z % image_.depth, first, count);
    };
    for (const auto& part : object.parts) fill(part, in_planes);
    for (const CocoRle& mask : object.masks) fill(mask, in_planes);
  }

  /// Fills pixels whose centre has an odd number of sides to its left.
  template <class Run>
  void fill(const std::vector<Ring>& rings, const Run& run) {
    struct Crossing {
      int64_t row;
      double x;
    };
    std::vector<Crossing> crossings;
    for (const Ring& ring : rings) {
      for (std::size_t i = 0; i < ring.size(); ++i) {
        auto a = ring[i], b = ring[(i + 1) % ring.size()];
        if (a[1] == b[1]) continue;
        if (a[1] > b[1]) std::swap(a, b);
        const auto first = static_cast<int64_t>(std::max(0.0, std::ceil(a[1] - 0.5)));
        const auto end = std::min(image_.height, static_cast<int64_t>(std::ceil(b[1] - 0.5)));
        for (int64_t row = first; row < end; ++row) {
          const double share = (static_cast<double>(row) + 0.5 - a[1]) / (b[1] - a[1]);
          crossings.push_back({row, a[0] + share * (b[0] - a[0])});
        }
        if (crossings.size() > kMostCrossings)
          throw DataError(path_ + ": an outline with too many sides, expected a simpler one");
      }
    }
    std::ranges::sort(crossings, [](const Crossing& a, const Crossing& b) {
      return a.row != b.row ? a.row < b.row : a.x < b.x;
    });
    const auto column = [&](double x) {
      return static_cast<int64_t>(
          std::clamp(std::ceil(x - 0.5), 0.0, static_cast<double>(image_.width)));
    };
    for (std::size_t i = 0; i + 1 < crossings.size(); i += 2) {
      const int64_t x0 = column(crossings[i].x), x1 = column(crossings[i + 1].x);
      if (x1 > x0) run(crossings[i].row * image_.width + x0, x1 - x0);
    }
  }
  template <class Run>
  void fill(const CocoRle& mask, const Run& run) {
    int64_t pixel = 0;
    for (std::size_t i = 0; i < mask.counts.size(); pixel += mask.counts[i++]) {
      if (i % 2 == 0) continue;
      for (int64_t k = pixel; k < pixel + mask.counts[i]; ++k)  // column by column
        run(k % mask.height * image_.width + k / mask.height, 1);
    }
  }

  const std::string& path_;
  const AnnotatedImage& image_;
  int32_t* pixels_;
  int64_t plane_, painted_ = 0;
};

/// The number of the class: its place among the names, from 1; 0 where it has none, and needs
/// none.
int64_t class_of(const std::string& path,
                 const Annotation& object,
                 const std::vector<std::string>& names) {
  const auto found = std::ranges::find(names, object.class_name);
  if (found != names.end()) return found - names.begin() + 1;
  throw DataError("{}: {}, expected one of class_names: {}.{}",
                  path,
                  object.class_name.empty()
                      ? "an object without a class"
                      : "the class '" + printable(object.class_name, 80) + "'",
                  fmt::join(names, ", "),
                  suggestion(object.class_name, names));
}

void check_planes(const std::string& path,
                  const std::vector<Annotation>& annotations,
                  const AnnotatedImage& image) {
  int64_t plane = -1;
  for (const Annotation& object : annotations) {
    const bool is_other =
        image.depth == 1 && plane >= 0 && object.plane >= 0 && object.plane != plane;
    if (is_other || (image.depth > 1 && object.plane >= image.depth)) {
      throw DataError("{}: an object in plane {}, expected planes that {} has: {} plane{}",
                      path,
                      std::max(object.plane, plane) + 1,
                      image.path,
                      image.depth,
                      image.depth == 1 ? "" : "s");
    }
    plane = std::max(plane, object.plane);
  }
}

/// The number of each object of instances: planes of a stack with the same name are one object.
std::vector<int32_t> numbers_of(const std::vector<Annotation>& annotations, int64_t depth) {
  std::vector<int32_t> numbers;
  std::map<std::string, int32_t> named;
  int32_t last = 0;
  for (const Annotation& object : annotations) {
    const bool is_joined = depth > 1 && !object.name.empty() && object.plane >= 0;
    const auto [known, is_new] =
        is_joined ? named.try_emplace(object.name, last + 1) : std::pair{named.end(), true};
    numbers.push_back(is_new ? ++last : known->second);
  }
  return numbers;
}

/// The box in whole pixels, at least one per side, inside the image; empty where it is outside.
std::array<int64_t, 4> whole_box(const std::array<double, 4>& box, const AnnotatedImage& image) {
  std::array<int64_t, 4> whole{};
  for (std::size_t k = 0; k < 2; ++k) {
    const int64_t side = k == 0 ? image.width : image.height;
    const int64_t begin = std::lround(box[k]);
    whole[k] = std::clamp<int64_t>(begin, 0, side);
    whole[k + 2] =
        std::clamp<int64_t>(std::max<int64_t>(begin + 1, std::lround(box[k + 2])), 0, side);
  }
  return whole;
}

/// Finds the layer of each box: the first one where it overlaps no other.
class Layers {
 public:
  Layers(const std::string& path, const AnnotatedImage& image, std::size_t classes)
      : path_(path), image_(image), stride_(box_class(static_cast<int64_t>(classes))) {}

  void add(const std::array<int64_t, 4>& box, int64_t kind) {
    const auto [x0, y0, x1, y1] = box;
    if (x1 <= x0 || y1 <= y0) return;
    if ((painted_ += (x1 - x0) * (y1 - y0)) > kMostPainted) throw_too_many();
    for (std::size_t layer = 0;; ++layer) {
      if (layer == layers_.size()) {
        if (layer == static_cast<std::size_t>(kMostLayers)) throw_too_many();
        check_memory(path_, "its boxes", 4.0 * static_cast<double>(image_.height * image_.width));
        layers_.push_back(
            {std::vector<int32_t>(static_cast<std::size_t>(image_.height * image_.width)), 0});
      }
      Layer& into = layers_[layer];
      if (into.last == stride_ - 1 || !is_free(into, box)) continue;
      ++into.last;
      for (int64_t y = y0; y < y1; ++y) {
        const auto row = into.pixels.begin() + y * image_.width;
        std::fill(row + x0, row + x1, static_cast<int32_t>(kind * stride_ + into.last));
      }
      return;
    }
  }
  Image image() const {
    Image image;
    image.dtype = Dtype::i32;
    image.shape = {std::max<int64_t>(1, std::ssize(layers_)), 1, image_.height, image_.width};
    image.pixels.resize(image.bytes());
    std::size_t at = 0;
    for (const Layer& layer : layers_) {
      const auto* begin = reinterpret_cast<const unsigned char*>(layer.pixels.data());
      const std::size_t bytes = layer.pixels.size() * sizeof(int32_t);
      std::copy(begin, begin + bytes, image.pixels.begin() + static_cast<std::ptrdiff_t>(at));
      at += bytes;
    }
    return image;
  }

 private:
  struct Layer {
    std::vector<int32_t> pixels;
    int64_t last = 0;
  };
  [[noreturn]] void throw_too_many() const {
    throw DataError(
        "{}: more than {} boxes lie over each other, expected fewer", path_, kMostLayers);
  }
  bool is_free(const Layer& layer, const std::array<int64_t, 4>& box) const {
    for (int64_t y = box[1]; y < box[3]; ++y) {
      const auto row = layer.pixels.begin() + y * image_.width;
      if (std::any_of(row + box[0], row + box[2], [](int32_t value) { return value != 0; }))
        return false;
    }
    return true;
  }
  const std::string& path_;
  const AnnotatedImage& image_;
  int64_t stride_;
  std::vector<Layer> layers_;
  int64_t painted_ = 0;
};

}  // namespace

Image paint_annotations(const std::string& path,
                        const std::vector<Annotation>& annotations,
                        const AnnotatedImage& image,
                        TargetKind kind,
                        const std::vector<std::string>& class_names) {
  check_planes(path, annotations, image);
  const auto kind_of = [&](const Annotation& object) {
    return class_names.empty() ? 0 : class_of(path, object, class_names);
  };
  if (kind == TargetKind::boxes) {
    if (image.depth > 1)
      throw DataError(image.path + ": a stack, expected a plane: boxes are of planes");
    Layers layers(path, image, class_names.size());
    for (const Annotation& object : annotations) {
      if (!object.is_crowd)
        layers.add(whole_box(object.box, image), std::max<int64_t>(1, kind_of(object)));
    }
    return layers.image();
  }
  const bool are_classes = kind == TargetKind::classes || kind == TargetKind::channels;
  if (are_classes && class_names.empty() && !annotations.empty())
    throw DataError(path + ": class_names are not known, expected the name of each class");
  Image target;
  target.dtype = Dtype::i32;
  target.shape = {kind == TargetKind::channels ? std::ssize(class_names) : 1,
                  image.depth,
                  image.height,
                  image.width};
  check_memory(path, "its target", static_cast<double>(target.bytes()));
  target.pixels.resize(target.bytes());
  Painter painter(path, image, target);
  const std::vector<int32_t> numbers = numbers_of(annotations, image.depth);
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const Annotation& object = annotations[i];
    if (kind == TargetKind::instances && object.is_crowd) continue;
    const int64_t own = are_classes ? kind_of(object) : 0;
    painter.paint(object,
                  kind == TargetKind::channels ? own - 1 : 0,
                  kind == TargetKind::instances ? numbers[i]
                  : kind == TargetKind::classes ? static_cast<int32_t>(own)
                                                : 1);
  }
  return target;
}

}  // namespace cytra::io
