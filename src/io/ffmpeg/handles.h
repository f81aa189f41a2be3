#pragma once
// FFmpeg's objects with owners, and its error codes as words.
#include <memory>
#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include "io/video_stream.h"

namespace cytra::io {

struct CloseFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct ClosePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct CloseCodec {
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
};
struct CloseScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};
using FramePointer = std::unique_ptr<AVFrame, CloseFrame>;
using PacketPointer = std::unique_ptr<AVPacket, ClosePacket>;
using CodecPointer = std::unique_ptr<AVCodecContext, CloseCodec>;
using ScalerPointer = std::unique_ptr<SwsContext, CloseScaler>;

/// Makes a frame. Throws: MemoryError.
FramePointer make_frame();
PacketPointer make_packet();

/// The message of an error code: "Invalid data found when processing input".
std::string words_of(int error);

/// Writes the packets of one stream from an encoder into the file. Throws: DataError, IoError.
void write_packets(AVCodecContext& encoder, AVFormatContext& container, int stream);

/// A converter between 8-bit RGB and the picture of `yuv`, whose matrix and range are that of its
/// tags; where it has none, BT.709 from 720 lines on, else BT.601, both with the studio's range,
/// and grey with the full one, as FFmpeg and OpenCV read it.
enum class Direction { to_rgb, to_yuv };
struct Picture {
  int width = 0, height = 0;
  AVPixelFormat format = AV_PIX_FMT_NONE;
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  bool operator==(const Picture& other) const;
};
AVColorSpace matrix_of(const Picture& picture);
/// Makes a converter for RGB of `width` x `height`. Throws: DataError for a pixel format that it
/// does not know.
ScalerPointer make_scaler(const Picture& yuv, int width, int height, Direction direction);

/// `stream_index` is that of the source.
struct SoundPacket {
  PacketPointer packet;
};

}  // namespace cytra::io
