#include "io/ffmpeg/source.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/signals.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

extern "C" {
#include <libavutil/avstring.h>
#include <libavutil/display.h>
}

namespace cytra::io {
namespace {

constexpr int kPipeBytes = 1 << 16;
constexpr int kWaitMs = 100;  // between two checks of `stop`

bool is_address(const std::string& path) {
  return path.find("://") != std::string::npos;
}

/// The containers in a single file. Others may name other files and addresses (HLS, DASH, concat,
/// SDP, numbered images), or is a device: AVFormatContext::format_whitelist.
constexpr char kVideoContainers[] =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,asf_o,ogg,"
    "gif,"
    "apng,nut,mxf,gxf,dv,ivf,av1,obu,h264,hevc,m4v,h263,h261,vc1,vc1test,dirac,cavsvideo,mjpeg,"
    "mjpeg_2000,mpjpeg,smjpeg,yuv4mpegpipe,rm,wtv,swf,r3d,nsv,ffm,rawvideo";

/// The protocols for an address that the user typed: those of the network, never files.
constexpr char kNetProtocols[] =
    "http,https,httpproxy,tcp,udp,udplite,tls,rtp,srtp,rtsp,rtmp,rtmpt,rtmps,rtmpe,srt,mmsh,mmst,"
    "ftp,sftp,unix";

void set_list(char** field, const std::string& text) {
  *field = av_strdup(text.c_str());
  if (*field == nullptr) throw std::bad_alloc();
}

/// Restricts FFmpeg to opening only what the user has named.
void narrow(AVFormatContext* container, const std::string& path, bool is_net, bool is_pipe) {
  std::string formats = kVideoContainers;
  if (is_net) formats += ",rtsp,rtp";
  // The user typed a playlist, which names further addresses.
  if (is_net && path.find(".m3u8") != std::string::npos) formats += ",hls,applehttp";
  set_list(&container->format_whitelist, formats);
  set_list(&container->protocol_whitelist, is_net ? kNetProtocols : is_pipe ? "none" : "file");
}

/// The format of a file that is not among kVideoContainers, such as "hls"; "" for one of them, or
/// an unknown one.
std::string other_format(const std::string& path) {
  std::vector<unsigned char> head(4096 + AVPROBE_PADDING_SIZE);
  const InputFile file(path);
  const int64_t got = file.read_at(0, head.data(), 4096);
  if (got <= 0) return "";
  AVProbeData probe{path.c_str(), head.data(), static_cast<int>(got), nullptr};
  const AVInputFormat* format = av_probe_input_format(&probe, 1);
  if (format == nullptr || av_match_list(format->name, kVideoContainers, ',') != 0) return "";
  return format->name;
}

/// The quarter turns clockwise that show a video upright, from its display matrix. Source:
/// FFmpeg's get_rotation().
int turns_of(const AVStream& stream) {
  const uint8_t* matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
  if (matrix == nullptr) return 0;
  const double counterclockwise = av_display_rotation_get(reinterpret_cast<const int32_t*>(matrix));
  if (std::isnan(counterclockwise)) return 0;
  return static_cast<int>((std::lround(-counterclockwise / 90) % 4 + 4) % 4);
}

}  // namespace

void fail_video(const std::string& path, const std::string& what) {
  throw DataError(path + ": " + what +
                  ", expected a complete video; it may be truncated or damaged: copy it again");
}

FFmpegSource::FFmpegSource(std::string path, std::function<bool()> stop)
    : path_(std::move(path)), stop_(std::move(stop)), decoded_(make_frame()) {
  av_log_set_level(AV_LOG_QUIET);  // our messages report errors
  try {
    open_container();
    open_decoder();
    describe();
  } catch (...) {
    close();
    throw;
  }
}

FFmpegSource::~FFmpegSource() {
  close();
}

void FFmpegSource::close() {
  avformat_close_input(&container_);
  if (pipe_input_ != nullptr) {
    av_freep(&pipe_input_->buffer);
    avio_context_free(&pipe_input_);
  }
  if (pipe_ >= 0) ::close(pipe_);
  pipe_ = -1;
}

int FFmpegSource::is_stopped(void* self) {
  const auto& stop = static_cast<FFmpegSource*>(self)->stop_;
  return stop && stop() ? 1 : 0;
}

/// Throws: Interrupted where a signal caused the failure.
void FFmpegSource::expect_no_signal() {
  const int signal = signal_received();
  if (signal != 0 && is_stopped(this) != 0)
    throw Interrupted(path_ + ": interrupted while it was opened", signal_exit_code(signal));
}

/// Reads from a pipe with a limit, as a read() that waits forever would keep a signal from ending
/// the program.
int FFmpegSource::read_pipe(void* self, uint8_t* bytes, int count) {
  const int pipe = static_cast<FFmpegSource*>(self)->pipe_;
  while (is_stopped(self) == 0) {
    pollfd state{pipe, POLLIN, 0};
    const int ready = ::poll(&state, 1, kWaitMs);
    if (ready < 0 && errno != EINTR) return AVERROR(errno);
    if (ready <= 0) continue;
    const ssize_t got = ::read(pipe, bytes, static_cast<std::size_t>(count));
    if (got > 0) return static_cast<int>(got);
    if (got == 0) return AVERROR_EOF;
    if (errno != EAGAIN && errno != EINTR) return AVERROR(errno);
  }
  return AVERROR_EXIT;
}

void FFmpegSource::open_pipe() {
  // The loop waits for a writer itself, so that a signal ends the wait: a FIFO that does not block
  // and has no writer seems to be at its end.
  while ((pipe_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (pipe_ < 0) throw_errno("can't be read", path_, errno);
  pollfd state{pipe_, POLLIN, 0};
  while (::poll(&state, 1, kWaitMs) <= 0 && is_stopped(this) == 0) {
  }
  auto* buffer = static_cast<unsigned char*>(av_malloc(kPipeBytes));
  if (buffer == nullptr) throw std::bad_alloc();
  pipe_input_ = avio_alloc_context(buffer, kPipeBytes, 0, this, &read_pipe, nullptr, nullptr);
  if (pipe_input_ == nullptr) throw std::bad_alloc();
  container_->pb = pipe_input_;
}

void FFmpegSource::open_container() {
  std::string name = path_;
  struct stat status {};
  const bool is_net = is_address(path_);
  if (!is_net) {
    if (::stat(path_.c_str(), &status) != 0) throw_errno("can't be read", path_, errno);
    if (S_ISDIR(status.st_mode)) throw DataError(path_ + ": a folder, expected a video");
    // A file's name is no address, even if it looks like one.
    name = "file:" + std::filesystem::absolute(path_).string();
  }
  info_.is_live = is_net || S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode);
  container_ = avformat_alloc_context();
  if (container_ == nullptr) throw std::bad_alloc();
  container_->interrupt_callback = {&is_stopped, this};
  narrow(container_, path_, is_net, !is_net && info_.is_live);
  if (!is_net && info_.is_live) open_pipe();
  const int opened = avformat_open_input(&container_, name.c_str(), nullptr, nullptr);
  if (opened < 0) expect_no_signal();
  if (opened < 0 && is_net) {
    throw DataError(
        "{}: {}: expected an address that FFmpeg reads (rtsp://, http://, tcp://, udp://), and a "
        "sender that is running",
        path_,
        words_of(opened));
  }
  if (opened < 0 && !info_.is_live) {
    const std::string other = other_format(path_);
    if (!other.empty()) {
      throw DataError(
          "{}: what it holds is for FFmpeg's reader '{}', expected a video in one file: playlists, "
          "which name others, are not opened",
          path_,
          other);
    }
  }
  if (opened < 0) {
    throw DataError(
        "{}: {}: expected a video of FFmpeg's; an MP4 that is cut off has no index and can't be "
        "read",
        path_,
        words_of(opened));
  }
  const int found = avformat_find_stream_info(container_, nullptr);
  if (found < 0) {
    expect_no_signal();
    fail_video(path_, words_of(found));
  }
}

void FFmpegSource::open_decoder() {
  const AVCodec* codec = nullptr;
  video_ = av_find_best_stream(container_, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  if (video_ == AVERROR_DECODER_NOT_FOUND)
    fail_video(path_, "no decoder for this video in FFmpeg's libraries");
  if (video_ < 0) fail_video(path_, "no video in this file");
  decoder_.reset(avcodec_alloc_context3(codec));
  if (!decoder_) throw std::bad_alloc();
  const AVStream& stream = video();
  int code = avcodec_parameters_to_context(decoder_.get(), stream.codecpar);
  decoder_->pkt_timebase = stream.time_base;
  decoder_->thread_count = 0;  // as many as there are cores
  if (code >= 0) code = avcodec_open2(decoder_.get(), codec, nullptr);
  if (code < 0) fail_video(path_, "its decoder: " + words_of(code));
}

void FFmpegSource::describe() {
  const AVStream& stream = video();
  info_.width = decoder_->width;
  info_.height = decoder_->height;
  if (info_.width < 1 || info_.height < 1) fail_video(path_, "a video without a size");
  check_memory(
      path_, "a frame", 3.0 * static_cast<double>(info_.width) * static_cast<double>(info_.height));
  info_.turns = turns_of(stream);
  info_.time_base = {stream.time_base.num, stream.time_base.den};
  const AVRational rate = av_guess_frame_rate(container_, container_->streams[video_], nullptr);
  if (rate.num > 0 && rate.den > 0) info_.frame_rate = av_q2d(rate);
  if (!info_.is_live) {
    if (stream.nb_frames > 0) {
      info_.frames = stream.nb_frames;
    } else if (container_->duration > 0 && info_.frame_rate > 0) {
      info_.frames =
          std::llround(static_cast<double>(container_->duration) / AV_TIME_BASE * info_.frame_rate);
    }
  }
  for (unsigned i = 0; i < container_->nb_streams; ++i) {
    AVStream* one = container_->streams[i];
    const bool is_sound = one->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    info_.sound_tracks += is_sound ? 1 : 0;
    if (!is_sound && static_cast<int>(i) != video_) one->discard = AVDISCARD_ALL;
  }
}

void FFmpegSource::take_sound(PacketPointer packet) {
  sound_.push_back(std::make_shared<SoundPacket>(SoundPacket{std::move(packet)}));
}

/// Passes one packet of the video, or its end, to the decoder.
void FFmpegSource::feed() {
  while (true) {
    PacketPointer packet = make_packet();
    const int code = av_read_frame(container_, packet.get());
    if (code < 0) {
      if (code != AVERROR_EOF && code != AVERROR_EXIT) failure_ = words_of(code);
      avcodec_send_packet(decoder_.get(), nullptr);
      is_drained_ = true;
      return;
    }
    const AVStream& stream = *container_->streams[packet->stream_index];
    if (packet->pts != AV_NOPTS_VALUE) {
      end_us_ = std::max(end_us_,
                         av_rescale_q(packet->pts + std::max<int64_t>(packet->duration, 0),
                                      stream.time_base,
                                      AVRational{1, AV_TIME_BASE}));
    }
    if (packet->stream_index != video_) {
      if (stream.codecpar->codec_type == AVMEDIA_TYPE_AUDIO) take_sound(std::move(packet));
      continue;
    }
    const bool is_damaged = (packet->flags & AV_PKT_FLAG_CORRUPT) != 0;
    const int sent = avcodec_send_packet(decoder_.get(), packet.get());
    if (sent == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (sent < 0 || is_damaged) ++bad_packets_;
    return;
  }
}

bool FFmpegSource::decode() {
  while (true) {
    const int code = avcodec_receive_frame(decoder_.get(), decoded_.get());
    if (code == 0) return true;
    if (code == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (code == AVERROR_EOF || (is_drained_ && code == AVERROR(EAGAIN))) return false;
    if (code != AVERROR(EAGAIN)) ++bad_packets_;
    if (!is_drained_) feed();
  }
}

void FFmpegSource::convert(VideoFrame& frame) {
  const auto width = static_cast<int>(info_.width), height = static_cast<int>(info_.height);
  const Picture picture{decoded_->width,
                        decoded_->height,
                        static_cast<AVPixelFormat>(decoded_->format),
                        decoded_->colorspace,
                        decoded_->color_range};
  if (!scaler_ || !(picture == picture_)) {
    scaler_ = make_scaler(picture, width, height, Direction::to_rgb);
    picture_ = picture;
  }
  frame.rgb.resize(static_cast<std::size_t>(3) * static_cast<std::size_t>(width) *
                   static_cast<std::size_t>(height));
  uint8_t* planes[4] = {frame.rgb.data()};
  const int steps[4] = {3 * width};
  sws_scale(scaler_.get(), decoded_->data, decoded_->linesize, 0, decoded_->height, planes, steps);
}

bool FFmpegSource::read(VideoFrame& frame) {
  const bool is_there = decode();
  frame = {};
  frame.sound = std::move(sound_);
  sound_.clear();
  if (!is_there) return false;
  convert(frame);
  frame.number = next_number_++;
  frame.duration = std::max<int64_t>(decoded_->pkt_duration, 0);
  int64_t pts = decoded_->best_effort_timestamp;
  if (pts == AV_NOPTS_VALUE) pts = last_pts_ == INT64_MIN ? 0 : last_pts_ + last_duration_;
  if (last_pts_ != INT64_MIN) pts = std::max(pts, last_pts_ + 1);  // time stamps must grow
  frame.pts = last_pts_ = pts;
  last_duration_ = std::max<int64_t>(frame.duration, 1);
  av_frame_unref(decoded_.get());
  return true;
}

bool FFmpegSource::skip() {
  const bool is_there = decode();
  sound_.clear();
  if (is_there) ++next_number_;
  return is_there;
}

bool FFmpegSource::is_scaled() const {
  return picture_.width != info_.width || picture_.height != info_.height;
}

int64_t FFmpegSource::stated_frames() const {
  AVStream* const stream = container_->streams[video_];
  if (av_match_list(container_->iformat->name, "mov", ',') == 0) return stream->nb_frames;
  // An edit list leaves out frames, which MP4's header counts; the index marks them.
  int64_t shown = 0;
  const int entries = stream->nb_frames > 0 ? avformat_index_get_entries_count(stream) : 0;
  for (int i = 0; i < entries; ++i)
    shown += (avformat_index_get_entry(stream, i)->flags & AVINDEX_DISCARD_FRAME) == 0 ? 1 : 0;
  return shown;
}

int64_t FFmpegSource::count_packets() {
  int64_t count = 0;
  const PacketPointer packet = make_packet();
  while (av_read_frame(container_, packet.get()) >= 0) {
    if (packet->stream_index == video_ && (packet->flags & AV_PKT_FLAG_DISCARD) == 0) ++count;
    av_packet_unref(packet.get());
  }
  return count;
}

std::string FFmpegSource::problem() const {
  constexpr double kTolerance = 0.5;  // seconds: containers round durations
  const double unit = 1.0 / AV_TIME_BASE;
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (bad_packets_ > 0) add(fmt::format("{} damaged packets", bad_packets_));
  if (!failure_.empty()) add(failure_);
  if (info_.is_live || !is_drained_ || (stop_ && stop_())) return text;
  const bool is_stated = container_->duration > 0 &&
                         container_->duration_estimation_method != AVFMT_DURATION_FROM_BITRATE;
  // A header's duration is counted from 0, also where the first frame comes later; one that FFmpeg
  // finds by time stamps is counted from the first frame.
  const bool is_from_first = container_->start_time != AV_NOPTS_VALUE &&
                             container_->duration_estimation_method == AVFMT_DURATION_FROM_PTS;
  const int64_t start = is_from_first ? container_->start_time : 0;
  const double there = end_us_ == INT64_MIN ? 0 : static_cast<double>(end_us_ - start) * unit,
               stated = static_cast<double>(container_->duration) * unit;
  if (is_stated && there < stated - kTolerance) {
    add(fmt::format("ends at {:.3f} s of {:.3f} s", there, stated));
  } else if (video().nb_frames > next_number_ && !text.empty()) {
    add(fmt::format("{} of {} frames", next_number_, video().nb_frames));
  }
  return text;
}

}  // namespace cytra::io
