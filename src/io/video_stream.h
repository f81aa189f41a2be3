#pragma once
// Videos as streams: every frame in order with its time stamp, sound passed on untouched. FFmpeg's
// libraries do the work; they live in libcytra_ffmpeg.so, loaded at the first call.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cytra::io {

/// The unit of a time stamp: seconds as a fraction.
struct TimeBase {
  int64_t numerator = 1, denominator = 1000;
  double seconds(int64_t units) const {
    return static_cast<double>(units) * static_cast<double>(numerator) /
           static_cast<double>(denominator);
  }
};

/// A packet of a sound track as it was read. Only the module knows its content.
struct SoundPacket;
using SoundPackets = std::vector<std::shared_ptr<SoundPacket>>;

struct VideoFrame {
  int64_t number = 0;    // of those that were decoded, from 0
  int64_t pts = 0;       // when it is shown, in units of VideoInfo::time_base
  int64_t duration = 0;  // in the same units; 0: unknown
  /// The pixels, 8-bit red, green, blue. Shape: (height, width, 3), as stored: VideoInfo::turns is
  /// not applied.
  std::vector<unsigned char> rgb;
  SoundPackets sound;  // sound that was read before this frame
};

struct VideoInfo {
  int64_t width = 0, height = 0;  // as stored
  int turns = 0;                  // quarter turns clockwise that show it upright, 0 to 3
  TimeBase time_base;
  double frame_rate = 0;  // per second, the average; 0: unknown
  int64_t frames = -1;    // by the file; -1: unknown
  bool is_live = false;   // a FIFO, a device or an address: it does not wait for its reader
  int64_t sound_tracks = 0;
};

/// A video that is read from its beginning. Thread: one at a time.
class VideoSource {
 public:
  virtual ~VideoSource() = default;
  const VideoInfo& info() const { return info_; }
  /// Reads the next frame. Returns false at the end; `frame.sound` then holds the last packets,
  /// and there are no pixels. Damaged data ends the video, or loses frames: see problem(). Throws:
  /// MemoryError.
  virtual bool read(VideoFrame& frame) = 0;
  /// The problem found so far: "ends at 1.24 s of 3.00 s"; "": none.
  virtual std::string problem() const = 0;

 protected:
  VideoInfo info_;
};

/// Opens a video. `stop` is called while waiting for a live source: true ends the wait.
/// Throws: ConfigError (no such file, not readable), DataError (no video, an unknown codec, the
/// build has no FFmpeg).
std::unique_ptr<VideoSource> open_video_source(const std::string& path,
                                               std::function<bool()> stop = {});

struct VideoSinkOptions {
  std::string codec = "auto";       // libx264, else mpeg4; or an encoder of FFmpeg by its name
  std::string preset = "veryfast";  // of libx264: ultrafast to veryslow
  int64_t crf = 20;                 // of libx264: 0 (lossless) to 51
  double tone_hz = 0;               // adds a sound track with a sine; 0: the source's sound is
                                    // copied
};

/// A video that is being made. Thread: one at a time.
class VideoSink {
 public:
  virtual ~VideoSink() = default;
  /// Writes a frame; time stamps must grow. Throws: IoError (the disk is full), DataError (the
  /// encoder's).
  virtual void write(const VideoFrame& frame) = 0;
  /// Finishes the video with the last packets of sound. The file gets its name now, unless it has
  /// no frame.
  virtual void finish(const SoundPackets& sound) = 0;
  /// Notes on parts of the source that could not be kept: "pcm_u8 sound does not fit into mp4:
  /// left out".
  virtual std::vector<std::string> notes() const = 0;
};

/// Makes a video. Pixels are stored as 8-bit yuv420p; time base, rotation and sound are those of
/// `like`. The extension selects the container (.mp4, .mov, .mkv ...). The file appears whole, by
/// finish(), or not at all. `path` "": frames are encoded and thrown away. Of a source that is not
/// from open_video_source(), only info() is used.
/// Throws: ConfigError (extension, codec, folder), DataError, IoError.
std::unique_ptr<VideoSink> create_video(const std::string& path,
                                        const VideoSource& like,
                                        const VideoSinkOptions& options = {});

// The functions that libcytra_ffmpeg.so exports; the caller owns the results.
using OpenVideoEntry = VideoSource* (*)(const std::string& path, std::function<bool()> stop);
constexpr char kOpenVideoEntry[] = "cytra_open_video";
using CreateVideoEntry = VideoSink* (*)(const std::string& path,
                                        const VideoSource& like,
                                        const VideoSinkOptions& options);
constexpr char kCreateVideoEntry[] = "cytra_create_video";

}  // namespace cytra::io
