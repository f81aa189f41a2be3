#pragma once
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "io/ffmpeg/handles.h"
#include "io/ffmpeg/source.h"

namespace cytra::io {

enum class FrameTimes {
  shown,    // when each is shown
  decoded,  // one per frame, in the order of decoding: readers guess wrong for H.264 and H.265
  counted,  // only a rate, from 0
};

/// The expected endings, for messages.
constexpr char kExpectedEndings[] = "expected .mp4, .mov, .mkv, .avi, .ts ...";

/// How a container keeps times. Throws: ConfigError for a container that loses the times of
/// frames.
FrameTimes times_in(const AVOutputFormat& format, const std::string& path);

/// The encoder of FFmpeg with this name; "auto": H.264 where FFmpeg has it and its times are kept,
/// else MPEG-4, which it always has. Throws: ConfigError.
const AVCodec* encoder_for(const AVOutputFormat& format,
                           FrameTimes times,
                           const std::string& name,
                           const std::string& path);

class Tone {
 public:
  /// Adds a stream to `container`, mono AAC of 48 kHz. Throws: DataError.
  Tone(AVFormatContext& container, double hz);
  /// Writes the sound before `until_s`.
  void write(AVFormatContext& container, double until_s);
  void finish(AVFormatContext& container);

 private:
  void encode(AVFormatContext& container, const AVFrame* frame);
  const double hz_;
  CodecPointer encoder_;
  int stream_ = 0;
  int64_t samples_ = 0;
};

/// A VideoSink into a file that gets its name by finish(), or into nothing.
class FFmpegSink final : public VideoSink {
 public:
  FFmpegSink(const std::string& path, const VideoSource& like, const VideoSinkOptions& options);
  ~FFmpegSink() override;
  FFmpegSink& operator=(FFmpegSink&&) = delete;
  void write(const VideoFrame& frame) override;
  void finish(const SoundPackets& sound) override;
  std::vector<std::string> notes() const override { return notes_; }

 private:
  void open_container(const std::string& path);
  void open_encoder(const VideoSource& like, const VideoSinkOptions& options);
  void open_output();
  void copy_tracks(const FFmpegSource& like);
  void write_header();
  void write_sound(const SoundPackets& sound);
  int64_t time_of(const VideoFrame& frame);
  void drain();
  void expect(int code, const std::string& action);
  void close();
  static int write_bytes(void* self, uint8_t* bytes, int count);
  static int64_t seek(void* self, int64_t offset, int whence);

  const std::string path_;  // for messages
  const VideoInfo info_;    // of the source
  std::optional<AtomicFile> file_;
  uint64_t position_ = 0, size_ = 0;  // in the file
  std::exception_ptr write_error_;
  AVFormatContext* container_ = nullptr;
  CodecPointer encoder_;
  int video_ = 0;
  FrameTimes times_ = FrameTimes::shown;
  std::optional<int64_t> first_pts_;  // of frames that are counted
  int64_t last_number_ = -1;          // of frames that are counted
  struct Track {
    int stream;        // ours
    AVRational units;  // of the source's time stamps
  };
  std::map<int, Track> tracks_;  // of sound, by the source's stream
  std::optional<Tone> tone_;
  ScalerPointer scaler_;
  FramePointer picture_;
  std::vector<unsigned char> padded_;  // RGB with even sides
  std::vector<std::string> notes_;
  bool is_begun_ = false;
};

}  // namespace cytra::io
