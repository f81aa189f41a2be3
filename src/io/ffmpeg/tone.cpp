// Part of io/ffmpeg/sink.h: a sound track with a sine.
#include <cmath>
#include <new>

#include "base/error.h"
#include "io/ffmpeg/sink.h"

namespace cytra::io {
namespace {

constexpr int kSamplesPerSecond = 48000;
constexpr double kTwoPi = 6.283185307179586, kLoudness = 0.25;

}  // namespace

Tone::Tone(AVFormatContext& container, double hz) : hz_(hz) {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_AAC);
  if (codec == nullptr) throw DataError("FFmpeg's libraries here have no encoder for AAC sound");
  encoder_.reset(avcodec_alloc_context3(codec));
  AVStream* stream = avformat_new_stream(&container, nullptr);
  if (!encoder_ || stream == nullptr) throw std::bad_alloc();
  stream_ = stream->index;
  encoder_->sample_fmt = AV_SAMPLE_FMT_FLTP;
  encoder_->sample_rate = kSamplesPerSecond;
  encoder_->ch_layout = AV_CHANNEL_LAYOUT_MONO;
  encoder_->bit_rate = 64000;
  encoder_->time_base = stream->time_base = {1, kSamplesPerSecond};
  if ((container.oformat->flags & AVFMT_GLOBALHEADER) != 0)
    encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  int code = avcodec_open2(encoder_.get(), codec, nullptr);
  if (code >= 0) code = avcodec_parameters_from_context(stream->codecpar, encoder_.get());
  if (code < 0) throw DataError("the encoder of AAC sound: {}", words_of(code));
}

void Tone::encode(AVFormatContext& container, const AVFrame* frame) {
  const int code = avcodec_send_frame(encoder_.get(), frame);
  if (code < 0) throw DataError("the encoder of AAC sound: {}", words_of(code));
  write_packets(*encoder_, container, stream_);
}

void Tone::write(AVFormatContext& container, double until_s) {
  while (static_cast<double>(samples_) < until_s * kSamplesPerSecond) {
    const FramePointer frame = make_frame();
    frame->nb_samples = encoder_->frame_size;
    frame->format = encoder_->sample_fmt;
    frame->ch_layout = encoder_->ch_layout;
    frame->sample_rate = kSamplesPerSecond;
    frame->pts = samples_;
    if (av_frame_get_buffer(frame.get(), 0) < 0) throw std::bad_alloc();
    auto* values = reinterpret_cast<float*>(frame->data[0]);
    for (int i = 0; i < frame->nb_samples; ++i, ++samples_) {
      values[i] = static_cast<float>(
          kLoudness * std::sin(kTwoPi * hz_ * static_cast<double>(samples_) / kSamplesPerSecond));
    }
    encode(container, frame.get());
  }
}

void Tone::finish(AVFormatContext& container) {
  encode(container, nullptr);
}

}  // namespace cytra::io
