// Reads videos through OpenCV's FFmpeg; exported by libcytra_video.so.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <mutex>

#include <dlfcn.h>
#include <fmt/format.h>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/videoio.hpp>
#include <sys/stat.h>

#include "base/error.h"
#include "io/input_file.h"
#include "io/module.h"
#include "io/pixels/format.h"
#include "io/video/edit_list.h"
#include "io/video_formats.h"

namespace cytra::io {
namespace {

constexpr std::size_t kKept = 8;  // captures that are kept for the next frame
constexpr double kMostFrames = 1e8;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError(path + ": " + what +
                  ", expected a complete video; it may be truncated or damaged: copy it again");
}

/// Silences FFmpeg. OpenCV sets its level at each opening, so messages while a damaged file is
/// opened are still visible.
void be_quiet() {
  constexpr int kQuiet = -8;
  static auto* set_level = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "av_log_set_level"));
  if (set_level != nullptr) set_level(kQuiet);
}

/// A file in its present version.
struct Version {
  std::string path;
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;
  bool operator==(const Version& other) const {
    return path == other.path && bytes == other.bytes && seconds == other.seconds &&
           nanoseconds == other.nanoseconds;
  }
};

Version version_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno("can't be read", path, errno);
  return {path, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

struct Capture {
  Version version;
  cv::VideoCapture video;
  int64_t next = 0;  // the frame that grab() goes to
  int64_t frames = 0, height = 0, width = 0;
};

bool is_matroska(const std::string& path) {
  const InputFile file(path);
  char head[4] = {};
  return file.read_at(0, head, 4) == 4 && std::string(head, 4) == "\x1a\x45\xdf\xa3";
}

cv::VideoCapture open_capture(const std::string& path) {
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  // A video must not choose a reader that opens other files. OpenCV has no other option for it.
  static const bool is_narrow [[maybe_unused]] =
      ::setenv(
          "OPENCV_FFMPEG_CAPTURE_OPTIONS",
          fmt::format(
              "protocol_whitelist;{}|format_whitelist;{}", kVideoFileProtocols, kVideoContainers)
              .c_str(),
          1) == 0;
  // An absolute path is no network address and no pattern of names.
  cv::VideoCapture video(std::filesystem::absolute(path).string(), cv::CAP_FFMPEG);
  be_quiet();
  if (!video.isOpened()) fail(path, "the video can't be opened");
  return video;
}

/// Counts the frames of a container that states only its duration, by its packets, which are not
/// decoded. Where an edit list leaves some out, they must be decoded.
int64_t count_frames(const std::string& path, bool is_decoding) {
  cv::VideoCapture video = open_capture(path);
  if (!is_decoding && !video.set(cv::CAP_PROP_FORMAT, -1)) return 0;
  int64_t count = 0;
  while (video.grab()) ++count;
  return count;
}

std::unique_ptr<Capture> open_video_file(const Version& version) {
  auto capture = std::make_unique<Capture>();
  capture->version = version;
  const std::string& path = version.path;
  capture->video = open_capture(path);
  capture->height = static_cast<int64_t>(capture->video.get(cv::CAP_PROP_FRAME_HEIGHT));
  capture->width = static_cast<int64_t>(capture->video.get(cv::CAP_PROP_FRAME_WIDTH));
  check_shape(path,
              {3, 1, capture->height, capture->width},
              Dtype::u8,
              static_cast<std::size_t>(version.bytes));
  const double claimed = capture->video.get(cv::CAP_PROP_FRAME_COUNT);
  if (!(claimed <= kMostFrames)) fail(path, fmt::format("a video of {:.0f} frames", claimed));
  capture->frames = is_matroska(path) ? count_frames(path, false)
                    : has_edits(path) ? count_frames(path, true)
                                      : static_cast<int64_t>(claimed);
  if (capture->frames < 1) fail(path, "a video without frames");
  // A header may state any number: where the file is too small for it, its packets are counted.
  constexpr int64_t kUsualBytes = 64;  // of a frame that repeats the one before
  if (capture->frames > version.bytes / kUsualBytes) {
    const int64_t there = count_frames(path, false);
    if (there > 0 && there < capture->frames)
      fail(path, fmt::format("its frames end at {} of {}", there, capture->frames));
  }
  return capture;
}

/// Keeps open captures, each after the last frame that it returned: later frames need no repeated
/// decoding.
class Captures {
 public:
  /// Takes the nearest capture before `frame`.
  std::unique_ptr<Capture> take(const Version& version, int64_t frame) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      auto best = kept_.end();
      for (auto capture = kept_.begin(); capture != kept_.end(); ++capture) {
        if ((*capture)->version == version && (*capture)->next <= frame &&
            (best == kept_.end() || (*best)->next < (*capture)->next))
          best = capture;
      }
      if (best != kept_.end()) {
        std::unique_ptr<Capture> capture = std::move(*best);
        kept_.erase(best);
        return capture;
      }
    }
    return open_video_file(version);
  }
  void give(std::unique_ptr<Capture> capture) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.push_front(std::move(capture));
    if (kept_.size() > kKept) kept_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::list<std::unique_ptr<Capture>> kept_;  // the latest first
};

Captures& captures() {
  static auto* all = new Captures;  // threads may read while the program ends
  return *all;
}

/// Decodes a frame. Seeking is not exact in every container (opencv#9053), so frames are counted
/// from the first one.
Image decode(const Version& version, int64_t frame) {
  const std::string& path = version.path;
  std::unique_ptr<Capture> capture = captures().take(version, frame);
  cv::Mat pixels;
  bool is_there = true;
  for (; is_there && capture->next <= frame; capture->next += is_there ? 1 : 0)
    is_there = capture->video.grab();
  if (!is_there) {
    fail(path, fmt::format("its frames end at {} of {}", capture->next, capture->frames));
  }
  if (!capture->video.retrieve(pixels)) fail(path, fmt::format("frame {} can't be decoded", frame));
  if (pixels.type() != CV_8UC3 || pixels.rows != capture->height || pixels.cols != capture->width)
    fail(path, fmt::format("frame {} has another size", frame));
  Image image;
  allocate(path,
           {3, 1, capture->height, capture->width},
           static_cast<std::size_t>(version.bytes),
           image);
  const std::vector<unsigned char*> rgb = channels_of(image);
  for (int row = 0; row < pixels.rows; ++row) {
    const auto at = static_cast<std::size_t>(row) * static_cast<std::size_t>(pixels.cols);
    deinterleave(pixels.ptr(row), pixels.cols, 1, {rgb[2] + at, rgb[1] + at, rgb[0] + at});
  }
  captures().give(std::move(capture));
  return image;
}

std::unique_ptr<ImageReader> open_reader(const std::string& path, const Selection& selection) {
  const Version version = version_of(path);
  ImageInfo info;
  {
    // Any capture of the file has this information; this one is then ready for the frame, too.
    std::unique_ptr<Capture> capture =
        captures().take(version, std::max<int64_t>(selection.timepoint, 0));
    info.shape = {3, 1, capture->height, capture->width};
    info.timepoints = capture->frames;
    captures().give(std::move(capture));
  }
  const int64_t frame = std::max<int64_t>(selection.timepoint, 0);
  return std::make_unique<WholeReader>(
      path, info, selection, [version, frame] { return decode(version, frame); });
}

}  // namespace
}  // namespace cytra::io

extern "C" cytra::io::ImageReader* cytra_open_image(const std::string& path,
                                                    const cytra::io::Selection& selection) {
  return cytra::io::open_reader(path, selection).release();
}
