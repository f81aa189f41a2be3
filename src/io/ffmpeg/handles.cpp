#include "io/ffmpeg/handles.h"

#include <new>
#include <tuple>

#include "base/error.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace cytra::io {

FramePointer make_frame() {
  FramePointer frame(av_frame_alloc());
  if (!frame) throw std::bad_alloc();
  return frame;
}

PacketPointer make_packet() {
  PacketPointer packet(av_packet_alloc());
  if (!packet) throw std::bad_alloc();
  return packet;
}

std::string words_of(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  return text;
}

void write_packets(AVCodecContext& encoder, AVFormatContext& container, int stream) {
  while (true) {
    const PacketPointer packet = make_packet();
    int code = avcodec_receive_packet(&encoder, packet.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
    if (code < 0) throw DataError("{}: {}", encoder.codec->name, words_of(code));
    packet->stream_index = stream;
    av_packet_rescale_ts(packet.get(), encoder.time_base, container.streams[stream]->time_base);
    code = av_interleaved_write_frame(&container, packet.get());
    if (code < 0) throw IoError("{}: {}", container.url, words_of(code));
  }
}

bool Picture::operator==(const Picture& other) const {
  return std::tie(width, height, format, matrix, range) ==
         std::tie(other.width, other.height, other.format, other.matrix, other.range);
}

AVColorSpace matrix_of(const Picture& picture) {
  constexpr int kHighDefinition = 720;  // lines: what players assume, too
  if (picture.matrix != AVCOL_SPC_UNSPECIFIED && picture.matrix != AVCOL_SPC_RGB)
    return picture.matrix;
  return picture.height >= kHighDefinition ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M;
}

ScalerPointer make_scaler(const Picture& yuv, int width, int height, Direction direction) {
  const bool to_rgb = direction == Direction::to_rgb;
  ScalerPointer scaler(sws_getContext(to_rgb ? yuv.width : width,
                                      to_rgb ? yuv.height : height,
                                      to_rgb ? yuv.format : AV_PIX_FMT_RGB24,
                                      to_rgb ? width : yuv.width,
                                      to_rgb ? height : yuv.height,
                                      to_rgb ? AV_PIX_FMT_RGB24 : yuv.format,
                                      SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT,
                                      nullptr,
                                      nullptr,
                                      nullptr));
  if (!scaler) {
    const char* name = av_get_pix_fmt_name(yuv.format);
    throw DataError("pixels of {} can't be converted", name == nullptr ? "no type" : name);
  }
  const int* matrix = sws_getCoefficients(matrix_of(yuv));  // AVCOL_SPC_* are its numbers
  const AVPixFmtDescriptor* const pixels = av_pix_fmt_desc_get(yuv.format);
  const bool is_grey = pixels != nullptr && pixels->nb_components < 3;
  const bool is_full =
      yuv.range == AVCOL_RANGE_JPEG || (yuv.range == AVCOL_RANGE_UNSPECIFIED && is_grey);
  const int* plain = sws_getCoefficients(SWS_CS_DEFAULT);  // of RGB: not used
  constexpr int kOne = 1 << 16;
  if (to_rgb) {
    sws_setColorspaceDetails(scaler.get(), matrix, is_full, plain, 1, 0, kOne, kOne);
  } else {
    sws_setColorspaceDetails(scaler.get(), plain, 1, matrix, is_full, 0, kOne, kOne);
  }
  return scaler;
}

}  // namespace cytra::io
