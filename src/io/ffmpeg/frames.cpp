// Reads frames of videos by their numbers, as images.
#include <algorithm>
#include <cerrno>
#include <list>
#include <mutex>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "io/ffmpeg/source.h"
#include "io/module.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kKept = 8;  // videos that are kept open for the next frame

/// A file in its present version.
struct Version {
  std::string path;
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;
  bool operator==(const Version& other) const = default;
};

Version version_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno("can't be read", path, errno);
  std::string name = path;  // with one slash at a place, as FFmpeg takes :// for an address
  for (std::size_t at = 0; (at = name.find("://", at)) != std::string::npos;) name.erase(at + 1, 1);
  return {name, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

struct OpenVideo {
  explicit OpenVideo(const Version& of) : version(of), source(of.path, {}) {}
  Version version;
  FFmpegSource source;
  int64_t next = 0;  // the frame that follows
  ImageInfo info;
};

/// Counts the frames of a video. A header may state any number: where the file is too small for it,
/// its packets are counted, as those of a container that states only its duration.
int64_t count_frames(const Version& version, const FFmpegSource& source) {
  constexpr int64_t kUsualBytes = 64;  // of a frame that repeats the one before
  const int64_t stated = source.stated_frames();
  if (stated > 0 && stated <= version.bytes / kUsualBytes) return stated;
  const int64_t there = FFmpegSource(version.path, {}).count_packets();
  if (there < stated)
    fail_video(version.path, fmt::format("its frames end at {} of {}", there, stated));
  if (there < 1) fail_video(version.path, "a video without frames");
  return there;
}

std::unique_ptr<OpenVideo> open_file(const Version& version) {
  auto video = std::make_unique<OpenVideo>(version);
  const VideoInfo& stored = video->source.info();
  const bool is_turned = stored.turns % 2 != 0;
  video->info.shape = {
      3, 1, is_turned ? stored.width : stored.height, is_turned ? stored.height : stored.width};
  check_shape(version.path, video->info.shape, Dtype::u8, static_cast<std::size_t>(version.bytes));
  video->info.timepoints = count_frames(version, video->source);
  return video;
}

/// Keeps videos open, each after the last frame that it returned: later frames need no repeated
/// decoding.
class OpenVideos {
 public:
  /// Takes the nearest one before `frame`.
  std::unique_ptr<OpenVideo> take(const Version& version, int64_t frame) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      auto best = kept_.end();
      for (auto video = kept_.begin(); video != kept_.end(); ++video) {
        if ((*video)->version == version && (*video)->next <= frame &&
            (best == kept_.end() || (*best)->next < (*video)->next))
          best = video;
      }
      if (best != kept_.end()) {
        std::unique_ptr<OpenVideo> video = std::move(*best);
        kept_.erase(best);
        return video;
      }
    }
    return open_file(version);
  }
  void give(std::unique_ptr<OpenVideo> video) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.push_front(std::move(video));
    if (kept_.size() > kKept) kept_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::list<std::unique_ptr<OpenVideo>> kept_;  // the latest first
};

OpenVideos& open_videos() {
  static auto* all = new OpenVideos;  // threads may read while the program ends
  return *all;
}

/// The samples of a stored frame as they are shown, after its quarter turns clockwise.
Samples upright(const VideoInfo& stored) {
  const int64_t w = stored.width, h = stored.height;
  const auto of = [](int64_t first, int64_t row, int64_t column) {
    return Samples{StoredType{}, false, {}, 3 * first, {1, 0, 3 * row, 3 * column}};
  };
  switch (stored.turns) {
    case 1:
      return of((h - 1) * w, 1, -w);
    case 2:
      return of(h * w - 1, -w, -1);
    case 3:
      return of(w - 1, -1, w);
    default:
      return of(0, w, 1);
  }
}

/// Decodes a frame. Seeking is not exact in every container, so frames are counted from the first
/// one.
Image decode(const Version& version, int64_t number) {
  std::unique_ptr<OpenVideo> video = open_videos().take(version, number);
  FFmpegSource& source = video->source;
  const ImageInfo info = video->info;
  while (video->next < number && source.skip()) ++video->next;
  VideoFrame frame;
  if (video->next < number || !source.read(frame))
    fail_video(version.path,
               fmt::format("its frames end at {} of {}", video->next, info.timepoints));
  if (source.is_scaled())
    fail_video(version.path, fmt::format("frame {} has another size", number));
  ++video->next;
  const Samples samples = upright(source.info());
  open_videos().give(std::move(video));
  return read_samples(version.path,
                      info,
                      samples,
                      frame.rgb.data(),
                      {0, 1, 2},
                      {{0, 0, 0}, {1, info.shape[2], info.shape[3]}},
                      static_cast<std::size_t>(version.bytes));
}

}  // namespace
}  // namespace cytra::io

extern "C" cytra::io::ImageReader* cytra_open_image(const std::string& path,
                                                    const cytra::io::Selection& selection) {
  using namespace cytra::io;
  const Version version = version_of(path);
  const int64_t number = std::max<int64_t>(selection.timepoint, 0);
  // Any open video of the file has this information; this one is then ready for the frame, too.
  std::unique_ptr<OpenVideo> video = open_videos().take(version, number);
  const ImageInfo info = video->info;
  open_videos().give(std::move(video));
  return new WholeReader(
      path, info, selection, [version, number] { return decode(version, number); });
}
