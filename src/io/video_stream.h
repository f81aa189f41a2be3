#pragma once
// Videos as streams: every frame in order with its time stamp, sound passed on untouched. FFmpeg's
// libraries do the work; they live in libcytra_ffmpeg.so, loaded at the first call.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cytra::io {

/// Seconds as a fraction: how long a unit of a time stamp lasts.
struct TimeBase {
  int64_t numerator = 1, denominator = 1000;
  double seconds(int64_t units) const {
    return static_cast<double>(units) * static_cast<double>(numerator) /
           static_cast<double>(denominator);
  }
};

/// A packet of a sound track as it was read. Only the module knows what is in it.
struct SoundPacket;
using SoundPackets = std::vector<std::shared_ptr<SoundPacket>>;

struct VideoFrame {
  int64_t number = 0;    // of those that were decoded, from 0
  int64_t pts = 0;       // when it is shown, in units of VideoInfo::time_base
  int64_t duration = 0;  // likewise; 0: unknown
  /// 8-bit red, green, blue; Shape: (height, width, 3), as stored: VideoInfo::turns is not applied.
  std::vector<unsigned char> rgb;
  SoundPackets sound;  // what was read ahead of this frame
};

struct VideoInfo {
  int64_t width = 0, height = 0;  // as stored
  int turns = 0;                  // quarter turns clockwise that show it upright, 0 to 3
  TimeBase time_base;
  double frame_rate = 0;  // per second, the average; 0: unknown
  int64_t frames = -1;    // as far as the file tells; -1: unknown
  bool is_live = false;   // a FIFO, a device or an address: it does not wait for its reader
  int64_t sound_tracks = 0;
};

/// One video, read from its beginning. Thread: one at a time.
class VideoSource {
 public:
  virtual ~VideoSource() = default;
  const VideoInfo& info() const { return info_; }
  /// The next frame. False: the end; `frame.sound` then holds the last packets, there are no
  /// pixels. Damaged data ends the video, or costs frames: problem() tells. Throws: MemoryError.
  virtual bool read(VideoFrame& frame) = 0;
  /// What is damaged or missing, by now: "ends at 1.24 s of 3.00 s"; "": nothing.
  virtual std::string problem() const = 0;

 protected:
  VideoInfo info_;
};

/// `stop` is asked while a live source is waited for: true ends it.
/// Throws: ConfigError (no such file, not readable), DataError (no video, an unknown codec, the
/// build has no FFmpeg).
std::unique_ptr<VideoSource> open_video_source(const std::string& path,
                                               std::function<bool()> stop = {});

struct VideoSinkOptions {
  std::string codec = "auto";       // libx264, else mpeg4; or an encoder of FFmpeg by its name
  std::string preset = "veryfast";  // of libx264: ultrafast to veryslow
  int64_t crf = 20;                 // of libx264: 0 (lossless) to 51
  double tone_hz = 0;               // a sound track with a sine of its own; 0: the source's, copied
};

/// A video that is being made. Thread: one at a time.
class VideoSink {
 public:
  virtual ~VideoSink() = default;
  /// Time stamps must grow. Throws: IoError (the disk is full), DataError (the encoder's).
  virtual void write(const VideoFrame& frame) = 0;
  /// The end: `sound` are the last packets. The file gets its name now, unless it has no frame.
  virtual void finish(const SoundPackets& sound) = 0;
  /// What could not be kept as it was: "pcm_u8 sound does not fit into mp4: left out".
  virtual std::vector<std::string> notes() const = 0;
};

/// Pixels are stored as 8-bit yuv420p; time base, rotation and sound are those of `like`. The
/// extension tells the container (.mp4, .mov, .mkv ...). The file appears whole, by finish(), or
/// not at all. `path` "": frames are encoded and thrown away. A source that is not of
/// open_video_source() gives its info() alone.
/// Throws: ConfigError (extension, codec, folder), DataError, IoError.
std::unique_ptr<VideoSink> create_video(const std::string& path,
                                        const VideoSource& like,
                                        const VideoSinkOptions& options = {});

// What libcytra_ffmpeg.so exports; each gives away what it returns.
using OpenVideoEntry = VideoSource* (*)(const std::string& path, std::function<bool()> stop);
constexpr char kOpenVideoEntry[] = "cytra_open_video";
using CreateVideoEntry = VideoSink* (*)(const std::string& path,
                                        const VideoSource& like,
                                        const VideoSinkOptions& options);
constexpr char kCreateVideoEntry[] = "cytra_create_video";

}  // namespace cytra::io
