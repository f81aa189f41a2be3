#include "io/ffmpeg/sink.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "base/error.h"

extern "C" {
#include <libavutil/opt.h>
}

namespace cytra::io {
namespace {

constexpr int kBufferBytes = 1 << 16;

int even(int64_t side) {
  return static_cast<int>(side + side % 2);
}

}  // namespace

FFmpegSink::FFmpegSink(const std::string& path,
                       const VideoSource& like,
                       const VideoSinkOptions& options)
    : path_(path.empty() ? "the video" : path), info_(like.info()), picture_(make_frame()) {
  av_log_set_level(AV_LOG_QUIET);
  try {
    open_container(path);
    open_encoder(like, options);
    if (const auto* source = dynamic_cast<const FFmpegSource*>(&like); source != nullptr)
      copy_tracks(*source);
    if (options.tone_hz > 0) tone_.emplace(*container_, options.tone_hz);
    if (!path.empty()) file_.emplace(path);
    open_output();
  } catch (...) {
    close();
    throw;
  }
}

FFmpegSink::~FFmpegSink() {
  close();
}

void FFmpegSink::close() {
  if (container_ == nullptr) return;
  if (container_->pb != nullptr) {
    av_freep(&container_->pb->buffer);
    avio_context_free(&container_->pb);
  }
  avformat_free_context(container_);
  container_ = nullptr;
}

/// Checks an error code; an earlier error of a write to the disk is the cause of FFmpeg's.
void FFmpegSink::expect(int code, const std::string& action) {
  if (code >= 0) return;
  if (write_error_) std::rethrow_exception(write_error_);
  throw DataError("{}: {}: {}", path_, action, words_of(code));
}

int FFmpegSink::write_bytes(void* self, uint8_t* bytes, int count) {
  auto& sink = *static_cast<FFmpegSink*>(self);
  try {
    if (sink.file_) sink.file_->write_at(sink.position_, bytes, static_cast<std::size_t>(count));
  } catch (...) {
    sink.write_error_ = std::current_exception();
    return AVERROR(EIO);
  }
  sink.position_ += static_cast<uint64_t>(count);
  sink.size_ = std::max(sink.size_, sink.position_);
  return count;
}

int64_t FFmpegSink::seek(void* self, int64_t offset, int whence) {
  auto& sink = *static_cast<FFmpegSink*>(self);
  if (whence == AVSEEK_SIZE) return static_cast<int64_t>(sink.size_);
  const auto from = whence == SEEK_SET   ? int64_t{0}
                    : whence == SEEK_CUR ? static_cast<int64_t>(sink.position_)
                                         : static_cast<int64_t>(sink.size_);
  if (from + offset < 0) return AVERROR(EINVAL);
  sink.position_ = static_cast<uint64_t>(from + offset);
  return from + offset;
}

void FFmpegSink::open_container(const std::string& path) {
  const AVOutputFormat* format = path.empty() ? av_guess_format("null", nullptr, nullptr)
                                              : av_guess_format(nullptr, path.c_str(), nullptr);
  if (format == nullptr || format->video_codec == AV_CODEC_ID_NONE ||
      (!path.empty() && (format->flags & AVFMT_NOFILE) != 0))
    throw ConfigError("{}: not the file extension of a video: {}", path_, kExpectedEndings);
  times_ = times_in(*format, path_);
  expect(avformat_alloc_output_context2(&container_, format, nullptr, path_.c_str()),
         "its container");
}

void FFmpegSink::open_encoder(const VideoSource& like, const VideoSinkOptions& options) {
  const AVCodec* codec = encoder_for(*container_->oformat, times_, options.codec, path_);
  encoder_.reset(avcodec_alloc_context3(codec));
  AVStream* stream = avformat_new_stream(container_, nullptr);
  if (!encoder_ || stream == nullptr) throw std::bad_alloc();
  video_ = stream->index;
  encoder_->width = even(info_.width);
  encoder_->height = even(info_.height);
  if (encoder_->width != info_.width || encoder_->height != info_.height) {
    notes_.push_back(fmt::format("{}x{} pixels are padded to {}x{}: yuv420p needs even sides",
                                 info_.width,
                                 info_.height,
                                 encoder_->width,
                                 encoder_->height));
  }
  encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
  encoder_->time_base = {static_cast<int>(info_.time_base.numerator),
                         static_cast<int>(info_.time_base.denominator)};
  constexpr int kFinest = 65535;  // MPEG-4 holds no finer units of time
  if (codec->id == AV_CODEC_ID_MPEG4 && encoder_->time_base.den > kFinest)
    encoder_->time_base = {1, 60000};
  if (info_.frame_rate > 0) encoder_->framerate = av_d2q(info_.frame_rate, kFinest);
  if (times_ != FrameTimes::shown) encoder_->max_b_frames = 0;
  if (times_ == FrameTimes::counted) {
    if (info_.frame_rate <= 0) {
      throw ConfigError(
          "{}: {} holds a rate alone, and the input has none; write .mp4 or .mkv, which hold a "
          "time for each frame",
          path_,
          container_->oformat->name);
    }
    encoder_->time_base = av_inv_q(encoder_->framerate);
  }
  encoder_->color_range = AVCOL_RANGE_MPEG;
  encoder_->colorspace =
      matrix_of({encoder_->width, encoder_->height, encoder_->pix_fmt, AVCOL_SPC_UNSPECIFIED, {}});
  if ((container_->oformat->flags & AVFMT_GLOBALHEADER) != 0)
    encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (std::strcmp(codec->name, "libx264") == 0) {
    av_opt_set(encoder_->priv_data, "preset", options.preset.c_str(), 0);
    av_opt_set(encoder_->priv_data, "crf", std::to_string(options.crf).c_str(), 0);
  } else {
    encoder_->flags |= AV_CODEC_FLAG_QSCALE;  // the same quality for all frames
    constexpr int kQuality = 3;               // of 1 (best) to 31
    encoder_->global_quality = FF_QP2LAMBDA * kQuality;
    if (const VideoSinkOptions usual; options.crf != usual.crf || options.preset != usual.preset) {
      notes_.push_back(fmt::format("video.crf and video.preset are libx264's and do nothing for {}",
                                   codec->name));
    }
  }
  if (const auto* source = dynamic_cast<const FFmpegSource*>(&like); source != nullptr) {
    const AVStream& original = source->video();
    encoder_->sample_aspect_ratio = stream->sample_aspect_ratio =
        original.codecpar->sample_aspect_ratio;
    std::size_t bytes = 0;
    const uint8_t* matrix = av_stream_get_side_data(&original, AV_PKT_DATA_DISPLAYMATRIX, &bytes);
    if (matrix != nullptr) {
      uint8_t* copy = av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, bytes);
      if (copy == nullptr) throw std::bad_alloc();
      std::copy_n(matrix, bytes, copy);
    }
  }
  expect(avcodec_open2(encoder_.get(), codec, nullptr), fmt::format("the encoder {}", codec->name));
  expect(avcodec_parameters_from_context(stream->codecpar, encoder_.get()), "the encoder");
  stream->time_base = encoder_->time_base;
  stream->avg_frame_rate = encoder_->framerate;

  picture_->format = encoder_->pix_fmt;
  picture_->width = encoder_->width;
  picture_->height = encoder_->height;
  picture_->color_range = encoder_->color_range;
  picture_->colorspace = encoder_->colorspace;
  const Picture yuv{encoder_->width,
                    encoder_->height,
                    encoder_->pix_fmt,
                    encoder_->colorspace,
                    encoder_->color_range};
  scaler_ = make_scaler(yuv, encoder_->width, encoder_->height, Direction::to_yuv);
}

void FFmpegSink::copy_tracks(const FFmpegSource& like) {
  const AVFormatContext& original = like.container();
  for (unsigned i = 0; i < original.nb_streams; ++i) {
    const AVStream& track = *original.streams[i];
    if (track.codecpar->codec_type != AVMEDIA_TYPE_AUDIO) continue;
    if (times_ == FrameTimes::counted) {
      notes_.push_back(fmt::format("{} keeps no times of sound: left out; .mkv and .mp4 keep it",
                                   container_->oformat->name));
      continue;
    }
    const AVCodecID codec = track.codecpar->codec_id;
    if (track.codecpar->sample_rate <= 0) {  // cut off before its first packet
      notes_.push_back("a sound track without a rate: left out");
      continue;
    }
    if (avformat_query_codec(container_->oformat, codec, FF_COMPLIANCE_NORMAL) == 0) {
      notes_.push_back(fmt::format("{} sound does not fit into {}: left out; .mkv takes any",
                                   avcodec_get_name(codec),
                                   container_->oformat->name));
      continue;
    }
    AVStream* own = avformat_new_stream(container_, nullptr);
    if (own == nullptr) throw std::bad_alloc();
    expect(avcodec_parameters_copy(own->codecpar, track.codecpar), "its sound");
    own->codecpar->codec_tag = 0;  // each container has tags of its own
    own->time_base = track.time_base;
    own->disposition = track.disposition;
    tracks_[static_cast<int>(i)] = {own->index, track.time_base};
  }
}

void FFmpegSink::open_output() {
  if ((container_->oformat->flags & AVFMT_NOFILE) != 0) return;
  auto* buffer = static_cast<unsigned char*>(av_malloc(kBufferBytes));
  if (buffer == nullptr) throw std::bad_alloc();
  container_->pb = avio_alloc_context(buffer, kBufferBytes, 1, this, nullptr, &write_bytes, &seek);
  if (container_->pb == nullptr) throw std::bad_alloc();
}

void FFmpegSink::write_header() {
  is_begun_ = true;
  expect(avformat_write_header(container_, nullptr), "its beginning");
}

void FFmpegSink::write_sound(const SoundPackets& sound) {
  for (const std::shared_ptr<SoundPacket>& one : sound) {
    const auto track = tracks_.find(one->packet->stream_index);
    if (track == tracks_.end()) continue;
    PacketPointer packet(av_packet_clone(one->packet.get()));
    if (!packet) throw std::bad_alloc();
    const auto [stream, units] = track->second;
    packet->stream_index = stream;
    packet->pos = -1;
    av_packet_rescale_ts(packet.get(), units, container_->streams[stream]->time_base);
    expect(av_interleaved_write_frame(container_, packet.get()), "its sound");
  }
}

/// The frame's time in the encoder's units. For a container that holds a rate only it is a number
/// of frames: the nearest, if the difference is only the source's rounding.
int64_t FFmpegSink::time_of(const VideoFrame& frame) {
  const AVRational units{static_cast<int>(info_.time_base.numerator),
                         static_cast<int>(info_.time_base.denominator)};
  if (times_ != FrameTimes::counted) return av_rescale_q(frame.pts, units, encoder_->time_base);
  if (!first_pts_) first_pts_ = frame.pts;
  const double after = info_.time_base.seconds(frame.pts - *first_pts_),
               period = av_q2d(encoder_->time_base);
  const int64_t number = std::llround(after / period);
  const double rounding = std::min(info_.time_base.seconds(1) + 1e-9, period / 2);
  if (number <= last_number_ || std::abs(after - static_cast<double>(number) * period) > rounding) {
    throw DataError(
        "{}: {} holds {:.3f} frames per second alone, and the input's frame {} comes after {:.3f} "
        "s; write .mp4 or .mkv, which hold a time for each frame",
        path_,
        container_->oformat->name,
        info_.frame_rate,
        frame.number,
        after);
  }
  return last_number_ = number;
}

void FFmpegSink::write(const VideoFrame& frame) {
  const int64_t pts = time_of(frame);
  if (!is_begun_) write_header();
  const int width = encoder_->width, height = encoder_->height;
  const unsigned char* rgb = frame.rgb.data();
  const auto from = static_cast<std::size_t>(info_.width) * 3,
             to = static_cast<std::size_t>(width) * 3;
  if (frame.rgb.size() != from * static_cast<std::size_t>(info_.height))
    throw std::logic_error("a frame has another size than its video");
  if (from != to || height != info_.height) {  // the last column and row once more
    padded_.resize(to * static_cast<std::size_t>(height));
    for (int y = 0; y < height; ++y) {
      const auto row = static_cast<std::size_t>(std::min<int64_t>(y, info_.height - 1));
      unsigned char* out = padded_.data() + static_cast<std::size_t>(y) * to;
      std::copy_n(rgb + row * from, from, out);
      if (to > from) std::copy_n(out + from - 3, 3, out + from);
    }
    rgb = padded_.data();
  }
  if (av_frame_is_writable(picture_.get()) <= 0) {  // the encoder still holds the one before
    av_buffer_unref(&picture_->buf[0]);
    av_buffer_unref(&picture_->buf[1]);
    av_buffer_unref(&picture_->buf[2]);
    if (av_frame_get_buffer(picture_.get(), 0) < 0) throw std::bad_alloc();
  }
  const uint8_t* planes[4] = {rgb};
  const int steps[4] = {3 * width};
  sws_scale(scaler_.get(), planes, steps, 0, height, picture_->data, picture_->linesize);
  const AVRational units{static_cast<int>(info_.time_base.numerator),
                         static_cast<int>(info_.time_base.denominator)};
  picture_->pts = pts;
  picture_->pkt_duration = av_rescale_q(frame.duration, units, encoder_->time_base);
  picture_->pict_type = AV_PICTURE_TYPE_NONE;
  if (encoder_->codec_id == AV_CODEC_ID_MPEG4) picture_->quality = encoder_->global_quality;
  write_sound(frame.sound);
  if (tone_) tone_->write(*container_, info_.time_base.seconds(frame.pts + frame.duration));
  expect(avcodec_send_frame(encoder_.get(), picture_.get()), "its encoder");
  drain();
}

void FFmpegSink::drain() {
  try {
    write_packets(*encoder_, *container_, video_);
  } catch (const IoError&) {
    if (write_error_) std::rethrow_exception(write_error_);  // says why
    throw;
  }
}

void FFmpegSink::finish(const SoundPackets& sound) {
  if (!is_begun_) return;
  write_sound(sound);
  if (tone_) tone_->finish(*container_);
  expect(avcodec_send_frame(encoder_.get(), nullptr), "its encoder");
  drain();
  expect(av_write_trailer(container_), "its end");
  if (container_->pb != nullptr) avio_flush(container_->pb);
  if (write_error_) std::rethrow_exception(write_error_);
  if (file_) file_->commit();
}

}  // namespace cytra::io
