#include "io/video/edit_list.h"

#include <cstdint>
#include <optional>

#include "io/input_file.h"

namespace cytra::io {
namespace {

/// A box of the file: the place of its contents.
struct Box {
  uint64_t begin = 0, end = 0;
};

class Boxes {
 public:
  explicit Boxes(const std::string& path) : file_(path) {}
  Box whole() const { return {0, file_.bytes()}; }

  /// Calls action(contents) for each box of that kind in `in`.
  template <class Action>
  void each(const Box& in, const char* kind, const Action& action) const {
    for (uint64_t at = in.begin; at < in.end && in.end - at >= 8;) {
      uint64_t size = number(at, 4), head = 8;
      if (size == 1) size = number(at + 8, 8), head = 16;
      if (size == 0) size = in.end - at;
      if (size < head || size > in.end - at) return;
      char name[5] = {};
      file_.read_at(at + 4, name, 4);
      if (std::string(name) == kind) action(Box{at + head, at + size});
      at += size;
    }
  }
  /// The first box along a path of kinds, "mdia/minf/stbl".
  std::optional<Box> find(const Box& in, const std::string& kinds) const {
    const std::size_t slash = kinds.find('/');
    std::optional<Box> found;
    each(in, kinds.substr(0, slash).c_str(), [&](const Box& box) {
      if (!found) found = box;
    });
    if (!found || slash == std::string::npos) return found;
    return find(*found, kinds.substr(slash + 1));
  }
  /// Reads a number; 0 after the file's end.
  uint64_t number(uint64_t at, std::size_t size) const {
    unsigned char bytes[8] = {};
    if (file_.read_at(at, bytes, size) != static_cast<int64_t>(size)) return 0;
    uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | bytes[i];
    return value;
  }

 private:
  InputFile file_;
};

/// The times in mvhd and mdhd: ticks per second, and the track's duration in ticks.
struct Timescale {
  double scale = 0, duration = 0;
};
Timescale clock_of(const Boxes& boxes, const Box& box) {
  const bool is_long = boxes.number(box.begin, 1) == 1;
  const uint64_t at = box.begin + (is_long ? 20 : 12);
  return {static_cast<double>(boxes.number(at, 4)),
          static_cast<double>(boxes.number(at + 4, is_long ? 8 : 4))};
}

bool edits(const Boxes& boxes, const Box& movie, const Box& track) {
  const auto list = boxes.find(track, "edts/elst"), media = boxes.find(track, "mdia/mdhd"),
             handler = boxes.find(track, "mdia/hdlr"), header = boxes.find(movie, "mvhd"),
             sizes = boxes.find(track, "mdia/minf/stbl/stsz"),
             shifts = boxes.find(track, "mdia/minf/stbl/ctts");
  constexpr uint64_t kVideo = 0x76696465;
  if (!list || !media || !header || !sizes || !handler ||
      boxes.number(handler->begin + 8, 4) != kVideo)
    return false;
  const bool is_long = boxes.number(list->begin, 1) == 1;
  const std::size_t wide = is_long ? 8 : 4;
  uint64_t entries = boxes.number(list->begin + 4, 4), at = list->begin + 8;
  const auto media_time = [&] {
    const uint64_t time = boxes.number(at + wide, wide);
    return is_long ? static_cast<int64_t>(time) : int64_t{static_cast<int32_t>(time)};
  };
  if (entries > 1 && media_time() == -1) {  // the track only begins later
    --entries;
    at += 2 * wide + 4;
  }
  if (entries != 1) return entries > 1;
  const Timescale film = clock_of(boxes, *header), own = clock_of(boxes, *media);
  const auto frames = static_cast<double>(boxes.number(sizes->begin + 8, 4));
  if (film.scale <= 0 || own.scale <= 0 || frames < 1) return true;
  // Frames that are shown in another order than stored begin later.
  const auto first = shifts ? static_cast<double>(boxes.number(shifts->begin + 12, 4)) : 0;
  const auto begin = static_cast<double>(media_time()),
             shown = static_cast<double>(boxes.number(at, wide)) / film.scale * own.scale;
  const double frame = own.duration / frames;
  return begin > first || (shown > 0 && begin + shown < own.duration + first - 0.99 * frame);
}

}  // namespace

bool has_edits(const std::string& path) {
  const Boxes boxes(path);
  bool found = false;
  boxes.each(boxes.whole(), "moov", [&](const Box& movie) {
    boxes.each(
        movie, "trak", [&](const Box& track) { found = found || edits(boxes, movie, track); });
  });
  return found;
}

}  // namespace cytra::io
