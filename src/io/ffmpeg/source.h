#pragma once
#include <functional>
#include <string>

#include "io/ffmpeg/handles.h"

namespace cytra::io {

/// Throws: DataError, what is wrong with a video that may be damaged.
[[noreturn]] void fail_video(const std::string& path, const std::string& what);

/// A VideoSource of a file, a FIFO or an address that FFmpeg supports.
class FFmpegSource final : public VideoSource {
 public:
  FFmpegSource(std::string path, std::function<bool()> stop);
  ~FFmpegSource() override;
  FFmpegSource& operator=(FFmpegSource&&) = delete;
  bool read(VideoFrame& frame) override;
  std::string problem() const override;
  /// Decodes the next frame, and throws it and its sound away. Returns false at the end.
  bool skip();
  /// Whether the last frame was of another size than VideoInfo states, and scaled to it.
  bool is_scaled() const;
  /// The number of frames that the container states and shows; 0: unknown.
  int64_t stated_frames() const;
  /// Counts the frames by their packets, which are not decoded. Nothing can be read afterwards.
  int64_t count_packets();

  const AVFormatContext& container() const { return *container_; }
  const AVStream& video() const { return *container_->streams[video_]; }

 private:
  void close();
  void open_container();
  void expect_no_signal();
  void open_pipe();
  void open_decoder();
  void describe();
  bool decode();
  void feed();
  void take_sound(PacketPointer packet);
  void convert(VideoFrame& frame);
  static int is_stopped(void* self);
  static int read_pipe(void* self, uint8_t* bytes, int count);

  const std::string path_;
  const std::function<bool()> stop_;
  int pipe_ = -1;
  AVFormatContext* container_ = nullptr;
  AVIOContext* pipe_input_ = nullptr;
  int video_ = -1;
  CodecPointer decoder_;
  FramePointer decoded_;
  Picture picture_;  // of the frame before
  ScalerPointer scaler_;
  SoundPackets sound_;  // read, not yet given
  bool is_drained_ = false;
  int64_t next_number_ = 0, last_pts_ = INT64_MIN, last_duration_ = 0;
  int64_t end_us_ = INT64_MIN;  // of all packets
  int64_t bad_packets_ = 0;
  std::string failure_;  // of the container
};

}  // namespace cytra::io
