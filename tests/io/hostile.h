#pragma once
// What the readers promise for any file at all; for the tests of damaged files and tests/fuzz.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <string>

#include "base/error.h"
#include "io/annotations/annotations.h"
#include "io/annotations/paint.h"
#include "io/csv.h"
#include "io/reader.h"
#include "io/safetensors.h"
#include "io/weights/torch_file.h"

namespace cytra::io {

// Seconds of a processor, for what takes minutes when it is not bounded: slow machines and
// sanitizers have room.
constexpr double kSlower = 5;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761 + 1) {}
  std::size_t below(std::size_t count) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::size_t>(state_ >> 33) % count;
  }

 private:
  uint64_t state_;
};

/// What is wrong with an error's one line; "" for nothing.
inline std::string wrong_message(const std::string& path, const std::string& message) {
  const bool is_line = std::none_of(message.begin(), message.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < ' ' || letter == '\x7f';
  });
  const bool says_what = message.find("expected") != std::string::npos ||
                         message.find("this build has no") != std::string::npos;  // such files
  if (message.rfind(path, 0) == 0 && says_what && is_line && message.size() < path.size() + 1000)
    return "";
  return "an unclear message: " + message;
}

/// Runs `action`; a sentence about anything else than a DataError with a clear message, else "".
/// A ConfigError is right only for another file that is not there.
template <class Action>
std::string promise(const std::string& path, const Action& action) {
  try {
    return action();
  } catch (const DataError& error) {
    return wrong_message(path, error.what());
  } catch (const ConfigError& error) {
    const bool is_missing = std::strstr(error.what(), "No such file") != nullptr ||
                            std::strstr(error.what(), "name too long") != nullptr;
    return is_missing ? "" : std::string("ConfigError: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
}

/// That what the file does not have ends in a DataError.
template <class Action>
std::string must_be_refused(const std::string& what, const Action& action) {
  try {
    action();
  } catch (const DataError&) {
    return "";
  }
  return what + " was not refused";
}

inline std::string check_info(const ImageInfo& info) {
  for (const int64_t side : info.shape) {
    if (side < 1) return "a side below 1";
  }
  for (const double spacing : info.geometry.spacing_um) {
    if (!std::isfinite(spacing) || spacing < 0) return "a spacing that is none";
  }
  if (info.scenes < 1 || info.levels < 1 || info.timepoints < 1) return "counts below 1";
  if (!info.channel_names.empty() &&
      static_cast<int64_t>(info.channel_names.size()) != info.shape[0])
    return "names for other channels";
  return "";
}

inline std::string check_reads(const ImageReader& reader, const std::string& path, Random& random) {
  const ImageInfo& info = reader.info();
  Region part;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto side = static_cast<std::size_t>(info.shape[i + 1]);
    part.begin[i] = static_cast<int64_t>(random.below(side));
    const std::size_t left = side - static_cast<std::size_t>(part.begin[i]);
    part.size[i] = static_cast<int64_t>(1 + random.below(std::min<std::size_t>(left, 20)));
  }
  for (const int64_t begin : {info.shape[2], int64_t{-1}, INT64_MAX}) {
    const std::string found = must_be_refused("a region outside", [&] {
      reader.read({{0, begin, 0}, {1, 1, 1}});
    });
    if (!found.empty()) return found;
  }
  const std::string found = must_be_refused("a region too large", [&] {
    reader.read({{0, 0, 0}, {1, INT64_MAX, 1}});
  });
  if (!found.empty()) return found;
  const Image some = reader.read(part);
  if (some.shape != std::array<int64_t, 4>{info.shape[0], part.size[0], part.size[1], part.size[2]})
    return "a region of another size";
  double bytes = static_cast<double>(size_of(info.dtype));
  for (const int64_t side : info.shape) bytes *= static_cast<double>(side);
  if (bytes > 256e6 && bytes < 1.1e9) return "";  // Zarr gives up to 1 GB that has no chunks
  const Image whole = reader.read({});
  if (whole.shape != info.shape || whole.dtype != info.dtype ||
      whole.pixels.size() != whole.bytes())
    return "another shape than info() says";
  if (crop(whole, part, path).pixels != some.pixels) return "a region unlike the whole";
  return "";
}

/// Opens and reads the image in every way; what broke a promise, or "".
inline std::string check_image(const std::string& path, uint64_t seed) {
  Random random(seed);
  return promise(path, [&]() -> std::string {
    Selection selection;
    std::unique_ptr<ImageReader> reader;
    try {
      reader = open_image(path, selection);
    } catch (const DataError&) {
      selection.timepoint = 0;
      reader = open_image(path, selection);
    }
    const ImageInfo info = reader->info();
    std::string found = check_info(info);
    if (found.empty()) found = check_reads(*reader, path, random);
    const auto refuse = [&](const char* what, const Selection& wrong) {
      if (found.empty()) found = must_be_refused(what, [&] { open_image(path, wrong); });
    };
    refuse("a scene", {info.scenes, 0, 0, {}});
    refuse("a scene -2", {-2, 0, 0, {}});
    refuse("a level", {0, info.levels, 0, {}});
    refuse("a level -1", {0, -1, 0, {}});
    refuse("a time point", {0, 0, info.timepoints, {}});
    refuse("a channel", {0, 0, 0, {0, info.shape[0]}});
    refuse("a channel -1", {0, 0, 0, {-1}});
    const auto other = [&](const Selection& chosen) {
      if (!found.empty()) return;
      const auto another = open_image(path, chosen);
      found = check_info(another->info());
      if (found.empty()) found = check_reads(*another, path, random);
    };
    other({0, 0, 0, {info.shape[0] - 1}});
    if (info.timepoints > 1) other({0, 0, info.timepoints - 1, {}});
    if (info.levels > 1) other({0, info.levels - 1, 0, {}});
    if (info.scenes > 1) other({info.scenes - 1, 0, 0, {}});
    return found;
  });
}

inline std::string check_table(const std::string& path) {
  return promise(path, [&]() -> std::string {
    const Table table = read_table(path);
    if (table.columns.empty() || table.rows.size() != table.lines.size()) return "no columns";
    for (const auto& row : table.rows) {
      if (row.size() != table.columns.size()) return "a row of another length";
    }
    std::string longer = "x";
    for (const std::string& column : table.columns) longer += column;
    return must_be_refused("a column", [&] { table.column(longer); });
  });
}

inline std::string check_annotations(const std::string& path) {
  return promise(path, [&]() -> std::string {
    const AnnotatedImage image{"/data/train/cells.png", 1, 40, 48};
    const std::vector<Annotation> annotations = read_annotations(path, image);
    const std::vector<std::string> names = class_names_of({path});
    for (const TargetKind kind : {TargetKind::instances, TargetKind::boxes, TargetKind::mask}) {
      const Image target = paint_annotations(path, annotations, image, kind, {});
      if (target.shape[2] != 40 || target.shape[3] != 48) return "another size";
    }
    return "";
  });
}

/// `File`: SafetensorsFile or TorchFile.
template <class File>
std::string check_weights(const std::string& path) {
  return promise(path, [&]() -> std::string {
    const File file(path);
    unsigned sum = 0;
    for (const auto& [name, view] : file.tensors()) {
      std::size_t bytes = element_size(view.dtype);
      for (const int64_t side : view.shape) bytes *= static_cast<std::size_t>(side);
      if (view.bytes != bytes) return "bytes that do not fit the shape";
      for (std::size_t i = 0; i < view.bytes; ++i)
        sum += static_cast<const unsigned char*>(view.data)[i];
      for (const int64_t side : view.shape) {
        if (side < 0) return "a side below 0";
      }
    }
    return sum == 0xdeadbeef ? "a sum that no file has" : "";  // or nothing would be read
  });
}

}  // namespace cytra::io
