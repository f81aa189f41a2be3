// Videos as files: written, read, damaged, and by process_video.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "io/safetensors.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "samples/movie.h"
#include "tests/io/module_fixture.h"
#include "tests/pipelines/video_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/program.h"
#include "tests/support/tmp_dir.h"

namespace cytra::pipelines {
namespace {

namespace fs = std::filesystem;

samples::MovieOptions small_movie(int64_t frames) {
  samples::MovieOptions options;
  options.width = 96;
  options.height = 64;
  options.frames = frames;
  options.radius = 8;
  return options;
}

/// With sound.
void write_small_movie(const std::string& path, int64_t frames, int64_t crf = 20) {
  samples::Movie movie(small_movie(frames));
  io::VideoSinkOptions options;
  options.tone_hz = 440;
  options.crf = crf;
  const auto sink = io::create_video(path, movie, options);
  io::VideoFrame frame;
  while (movie.read(frame)) sink->write(frame);
  sink->finish({});
}

std::vector<io::VideoFrame> frames_of_video(io::VideoSource& source) {
  std::vector<io::VideoFrame> frames;
  io::VideoFrame frame;
  while (source.read(frame)) frames.push_back(std::move(frame));
  return frames;
}
std::vector<io::VideoFrame> frames_of_video(const std::string& path) {
  return frames_of_video(*io::open_video_source(path));
}

double mean_error(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

/// The checksums and times of the sound's packets, as FFmpeg's own program reads them.
std::string sound_of(const std::string& path) {
  return test::shell(
             "ffprobe -v error -select_streams a -show_packets -show_data_hash md5 "
             "-show_entries packet=pts_time,data_hash -of csv '" +
             path + "'")
      .out;
}

bool has_ffprobe() {
  return test::shell("ffprobe -version").code == 0;
}

class VideoFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!io::has_module("ffmpeg")) GTEST_SKIP() << "NOT TESTED: libcytra_ffmpeg.so was not built";
  }
  /// A checkpoint of a small model with random weights.
  std::string checkpoint() const {
    at::manual_seed(3);
    const std::string model =
        "{_target_: DynUNet, filters: [4, 8], strides: [1, 2], kernel_size: [3, 3], "
        "upsample_kernel_size: [2], out_channels: 2, spatial_dims: 2}";
    const auto network = make<nn::Model>(model);
    std::map<std::string, at::Tensor> kept;
    io::TensorViews views;
    for (const auto& [key, tensor] : nn::state_of(*network)) {
      kept[key] = tensor.detach().contiguous();
      views[key] = nn::view_of(kept[key]);
    }
    const std::string path = dir_ / "model.safetensors";
    io::write_safetensors(path,
                          views,
                          {{"config",
                            "{patch_shape: [32, 32], task: {_target_: SegmentationTask, x_key: "
                            "raw, y_key: seg, num_classes: 2, "
                            "inference_args: {roi_size: 32}, model: " +
                                model +
                                "}, data: {transforms: {train: [], predict: null, "
                                "valid: [{_target_: LoadImaged, keys: [raw, seg]}, {_target_: "
                                "NormalizeIntensityd, keys: raw}]}}}"}});
    return path;
  }
  std::string program(const std::string& in, const std::string& out) const {
    return "$BIN/process_video '" + in + "' '" + out + "' --ckpt '" + checkpoint() +
           "' trainer.accelerator=cpu performance.backend=eager";
  }
  void cut(const std::string& from, const std::string& to, double share) const {
    const std::string bytes = read_file(from);
    write_file(
        to, bytes.substr(0, static_cast<std::size_t>(share * static_cast<double>(bytes.size()))));
  }
  test::TmpDir dir_;
};

TEST_F(VideoFiles, WhatIsWrittenIsReadFrameByFrame) {
  for (const char* name : {"a.mp4", "a.mkv", "a.mov"}) {
    SCOPED_TRACE(name);
    write_small_movie(dir_ / name, 40);
    const auto source = io::open_video_source(dir_ / name);
    EXPECT_EQ(source->info().width, 96);
    EXPECT_EQ(source->info().height, 64);
    EXPECT_EQ(source->info().sound_tracks, 1);
    EXPECT_NEAR(source->info().frame_rate, 30, 1e-3);
    const std::vector<io::VideoFrame> frames = frames_of_video(*source);
    EXPECT_EQ(source->problem(), "");
    ASSERT_EQ(frames.size(), 40U);
    samples::Movie movie(small_movie(40));
    io::VideoFrame original;
    // Matroska counts milliseconds, from the sound's first packet: AAC begins ahead of 0
    const bool is_matroska = std::string(name) == "a.mkv";
    const int64_t first = is_matroska ? frames[0].pts : 0;
    EXPECT_LT(source->info().time_base.seconds(frames[0].pts), 0.03);
    for (const io::VideoFrame& frame : frames) {
      ASSERT_TRUE(movie.read(original));
      EXPECT_NEAR(source->info().time_base.seconds(frame.pts - first),
                  static_cast<double>(original.pts) / 30,
                  is_matroska ? 1.1e-3 : 1e-9)
          << frame.number;
      EXPECT_LT(mean_error(frame.rgb, original.rgb), 3) << frame.number;
    }
  }
}

TEST_F(VideoFiles, IrregularTimesAreKept) {
  const std::vector<int64_t> pts{0, 5, 45, 46, 100, 350, 351, 900, 1000, 1333, 2000};
  const auto draw = [](int64_t number) { return square_picture(64, 48, number, 2 * number, 16); };
  for (const char* name : {"vfr.mp4", "vfr.mkv"}) {
    SCOPED_TRACE(name);
    DrawnVideo video(64, 48, pts, draw);
    const auto sink = io::create_video(dir_ / name, video);
    io::VideoFrame frame;
    while (video.read(frame)) sink->write(frame);
    sink->finish({});
    const auto source = io::open_video_source(dir_ / name);
    const std::vector<io::VideoFrame> frames = frames_of_video(*source);
    ASSERT_EQ(frames.size(), pts.size());
    for (std::size_t i = 0; i < pts.size(); ++i) {
      EXPECT_NEAR(source->info().time_base.seconds(frames[i].pts) * 1000,
                  static_cast<double>(pts[i]),
                  1e-6);
    }
  }
}

/// Seconds after the first frame, as our reader and FFmpeg's own program see them.
void expect_times(const std::string& path, const std::vector<double>& expected, double tolerance) {
  const auto source = io::open_video_source(path);
  const std::vector<io::VideoFrame> frames = frames_of_video(*source);
  ASSERT_EQ(frames.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(source->info().time_base.seconds(frames[i].pts - frames[0].pts),
                expected[i] - expected[0],
                tolerance)
        << i;
  }
  if (!has_ffprobe()) return;
  const std::string lines = test::shell(
                                "ffprobe -v error -select_streams v -show_entries "
                                "frame=best_effort_timestamp_time -of csv=p=0 '" +
                                path + "'")
                                .out;
  const char* next = lines.c_str();
  double first = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    char* end = nullptr;
    const double time = std::strtod(next, &end);
    ASSERT_NE(end, next) << lines;
    if (i == 0) first = time;
    EXPECT_NEAR(time - first, expected[i] - expected[0], tolerance) << i;
    next = std::strchr(end, '\n');
    if (next == nullptr) break;
    ++next;
  }
}

/// Whole frames of a rate, at the numbers given; each frame has another picture, so that an encoder
/// has something to reorder.
std::vector<double> write_drawn(const std::string& path,
                                const std::vector<int64_t>& numbers,
                                io::TimeBase period) {
  std::vector<int64_t> pts;
  std::vector<double> seconds;
  for (const int64_t number : numbers) {
    pts.push_back(number * period.numerator);
    seconds.push_back(period.seconds(number));
  }
  DrawnVideo video(64, 48, pts, [](int64_t number) {
    return square_picture(64, 48, number % 40, number % 30, 16);
  });
  video.count_in({1, period.denominator}, 1 / period.seconds(1));
  const auto sink = io::create_video(path, video);
  io::VideoFrame frame;
  while (video.read(frame)) sink->write(frame);
  sink->finish({});
  return seconds;
}

TEST_F(VideoFiles, EveryContainerKeepsTheTimesOfFrames) {
  std::vector<int64_t> all(30), some;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<int64_t>(i);
    if (i % 7 < 3 || i == 29) some.push_back(all[i]);
  }
  const io::TimeBase rates[] = {{1, 25}, {1001, 30000}};
  for (const char* ending : {"mp4",
                             "m4v",
                             "mov",
                             "mkv",
                             "ts",
                             "m2ts",
                             "3gp",
                             "flv",
                             "f4v",
                             "nut",
                             "asf",
                             "wmv",
                             "avi"}) {
    for (const io::TimeBase& rate : rates) {
      for (const std::vector<int64_t>& numbers : {all, some}) {
        SCOPED_TRACE(fmt::format(
            "{}, {:.2f} per second, {} frames", ending, 1 / rate.seconds(1), numbers.size()));
        const std::string path = dir_ / (std::string("a.") + ending);
        const std::vector<double> seconds = write_drawn(path, numbers, rate);
        expect_times(path, seconds, 1.01e-3);  // Matroska, FLV and ASF count milliseconds
      }
    }
  }
}

TEST_F(VideoFiles, AContainerThatLosesTimesIsRefused) {
  for (const char* name : {"a.mpg", "a.vob", "a.mxf", "a.ogv", "a.h264", "a.y4m"}) {
    const std::string message = message_of<ConfigError>([&] {
      write_drawn(dir_ / name, {0, 1}, {1, 25});
    });
    EXPECT_NE(message.find("expected .mp4"), std::string::npos) << name << ": " << message;
  }
  DrawnVideo video(
      64, 48, {0, 5, 45, 46}, [](int64_t) { return square_picture(64, 48, 4, 4, 20); });
  io::VideoFrame frame;
  const std::string irregular = message_of<DataError>([&] {
    const auto sink = io::create_video(dir_ / "a.avi", video);
    while (video.read(frame)) sink->write(frame);
  });
  EXPECT_NE(irregular.find("avi holds 25.000 frames per second alone"), std::string::npos)
      << irregular;
  EXPECT_NE(irregular.find("frame 1 comes after 0.005 s; write .mp4"), std::string::npos)
      << irregular;
  io::VideoSinkOptions options;
  options.codec = "libx264";
  EXPECT_NE(message_of<ConfigError>([&] {
              io::create_video(dir_ / "a.wmv", video, options);
            }).find("video.codec=mpeg4"),
            std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir_ / "."));
}

TEST_F(VideoFiles, SoundKeepsItsTimesOrIsLeftOutAloud) {
  write_small_movie(dir_ / "in.mp4", 30);
  const auto in = io::open_video_source(dir_ / "in.mp4");
  EXPECT_EQ(io::create_video(dir_ / "a.wmv", *in)->notes().size(), 0U);
  const std::vector<std::string> notes = io::create_video(dir_ / "a.avi", *in)->notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("left out"), std::string::npos) << notes[0];
}

TEST_F(VideoFiles, TheInputIsNotOverwritten) {
  write_small_movie(dir_ / "in.mp4", 3);
  fs::create_symlink(dir_ / "in.mp4", dir_ / "link.mp4");
  const std::string before = read_file(dir_ / "in.mp4");
  for (const char* output : {"in.mp4", "link.mp4"}) {
    const test::Outcome done = test::shell(program(dir_ / "in.mp4", dir_ / output));
    EXPECT_EQ(done.code, 2) << output;
    EXPECT_NE(done.err.find("the input itself"), std::string::npos) << done.err;
    EXPECT_EQ(read_file(dir_ / "in.mp4"), before);
  }
}

TEST_F(VideoFiles, AVideoThatBeginsLateIsWhole) {
  for (const char* name : {"late.mp4", "late.mkv", "late.ts"}) {
    const std::string path = dir_ / name;
    DrawnVideo late(
        64, 48, {5000, 5040, 5080, 5120}, [](int64_t) { return square_picture(64, 48, 4, 4, 20); });
    const auto sink = io::create_video(path, late);
    io::VideoFrame frame;
    while (late.read(frame)) sink->write(frame);
    sink->finish({});
    const auto source = io::open_video_source(path);
    EXPECT_EQ(frames_of_video(*source).size(), 4U) << name;
    EXPECT_EQ(source->problem(), "") << name;
  }
}

TEST_F(VideoFiles, AContainerThatDoesNotTakeTheCodecIsNamed) {
  DrawnVideo video(64, 48, {0}, [](int64_t) { return square_picture(64, 48, 4, 4, 20); });
  EXPECT_NE(message_of<ConfigError>([&] {
              io::create_video(dir_ / "a.webm", video);
            }).find("webm holds no"),
            std::string::npos);
}

TEST_F(VideoFiles, OddSidesArePadded) {
  DrawnVideo video(65, 47, {0, 40}, [](int64_t) { return square_picture(65, 47, 60, 40, 16); });
  const auto sink = io::create_video(dir_ / "odd.mp4", video);
  EXPECT_EQ(sink->notes().size(), 1U);
  io::VideoFrame frame;
  while (video.read(frame)) sink->write(frame);
  sink->finish({});
  const std::vector<io::VideoFrame> frames = frames_of_video(dir_ / "odd.mp4");
  ASSERT_EQ(frames.size(), 2U);
  ASSERT_EQ(frames[0].rgb.size(), 3U * 66 * 48);
  EXPECT_NEAR(frames[0].rgb.back(), 200, 12) << "the last pixel once more";
}

TEST_F(VideoFiles, WithoutFinishThereIsNoFile) {
  samples::Movie movie(small_movie(5));
  {
    const auto sink = io::create_video(dir_ / "none.mp4", movie);
    io::VideoFrame frame;
    while (movie.read(frame)) sink->write(frame);
  }
  EXPECT_TRUE(fs::is_empty(dir_ / "."));
  EXPECT_NE(message_of<ConfigError>([&] { io::create_video(dir_ / "a.xyz", movie); }).find(".mp4"),
            std::string::npos);
}

TEST_F(VideoFiles, WhatIsNoVideoIsNamed) {
  write_file(dir_ / "text.mp4", "this is no video, and never was one");
  EXPECT_NE(
      message_of<DataError>([&] { io::open_video_source(dir_ / "text.mp4"); }).find("text.mp4"),
      std::string::npos);
  EXPECT_THROW(io::open_video_source(dir_ / "missing.mp4"), ConfigError);
}

TEST_F(VideoFiles, SoundPacketsAreCopied) {
  if (!has_ffprobe()) GTEST_SKIP() << "NOT TESTED: ffprobe is not installed";
  write_small_movie(dir_ / "in.mp4", 30);
  const auto done =
      test::shell(program(dir_ / "in.mp4", dir_ / "out.mp4") + " --skip-threshold 0.05");
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string before = sound_of(dir_ / "in.mp4");
  EXPECT_GT(before.size(), 1000U);
  EXPECT_EQ(sound_of(dir_ / "out.mp4"), before);
  const auto in = io::open_video_source(dir_ / "in.mp4"),
             out = io::open_video_source(dir_ / "out.mp4");
  const auto first = frames_of_video(*in), second = frames_of_video(*out);
  ASSERT_EQ(second.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(out->info().time_base.seconds(second[i].pts),
                in->info().time_base.seconds(first[i].pts),
                1e-9);
  }
}

TEST_F(VideoFiles, RotationIsKept) {
  write_small_movie(dir_ / "in.mp4", 3);
  std::string bytes = read_file(dir_ / "in.mp4");
  // tkhd's matrix, 16.16: a quarter clockwise, as phones write it. ISO/IEC 14496-12, 8.3.2.
  const std::size_t matrix = bytes.find("tkhd") + 4 + 40;
  ASSERT_LT(matrix + 36, bytes.size());
  const unsigned char turned[20] = {0, 0, 0,    0,    0, 1, 0, 0, 0, 0,
                                    0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0};
  bytes.replace(matrix, 20, reinterpret_cast<const char*>(turned), 20);
  write_file(dir_ / "in.mp4", bytes);
  EXPECT_EQ(io::open_video_source(dir_ / "in.mp4")->info().turns, 1);
  const auto done = test::shell(program(dir_ / "in.mp4", dir_ / "out.mp4") + " --roi 0,0,64,96");
  ASSERT_EQ(done.code, 0) << done.err;
  const auto out = io::open_video_source(dir_ / "out.mp4");
  EXPECT_EQ(out->info().turns, 1);
  EXPECT_EQ(out->info().width, 96);
}

TEST_F(VideoFiles, ATruncatedVideoGivesWhatIsThereAndOneWarning) {
  write_small_movie(dir_ / "whole.mkv", 60);
  cut(dir_ / "whole.mkv", dir_ / "cut.mkv", 0.5);
  const auto done = test::shell(program(dir_ / "cut.mkv", dir_ / "out.mp4"));
  EXPECT_EQ(done.code, 2) << done.err;
  EXPECT_NE(done.err.find("the last frame that could be decoded is that of"), std::string::npos)
      << done.err;
  const std::size_t frames = frames_of_video(dir_ / "out.mp4").size();
  EXPECT_GT(frames, 10U);
  EXPECT_LT(frames, 60U);
  write_small_movie(dir_ / "whole.mp4", 20);
  cut(dir_ / "whole.mp4", dir_ / "cut.mp4", 0.5);
  const auto none = test::shell(program(dir_ / "cut.mp4", dir_ / "none.mp4"));
  EXPECT_EQ(none.code, 2);
  EXPECT_FALSE(fs::exists(dir_ / "none.mp4"));
}

TEST_F(VideoFiles, ASecondRunTakesItsLabelsFromTheCache) {
  write_small_movie(dir_ / "in.mp4", 8);
  const auto run = [&](const std::string& more) {
    fs::remove(dir_ / "out.mp4");
    const auto done = test::shell(program(dir_ / "in.mp4", dir_ / "out.mp4") + " --cache-dir '" +
                                  (dir_ / "cache") + "' --output-kind mask video.crf=0" + more);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  };
  EXPECT_NE(run("").find("frames_cached: 0"), std::string::npos);
  EXPECT_NE(run("").find("frames_cached: 8"), std::string::npos);
  const std::string first = read_file(dir_ / "out.mp4");
  EXPECT_NE(run(" inference_args.overlap=0.5").find("frames_cached: 0"), std::string::npos);
  EXPECT_NE(run("").find("frames_cached: 8"), std::string::npos);
  EXPECT_TRUE(read_file(dir_ / "out.mp4") == first);
}

TEST_F(VideoFiles, TheBenchmarkMeasuresFourSizes) {
  const auto done =
      test::shell("$BIN/process_video --benchmark --ckpt '" + checkpoint() +
                  "' trainer.accelerator=cpu performance.backend=eager --roi 0,0,64,64 "
                  "video.limit_frames=2 video.preset=ultrafast");
  ASSERT_EQ(done.code, 0) << done.err;
  for (const char* size : {"1080p", "4K", "6K", "8K"})
    EXPECT_NE(done.out.find(std::string("fps_") + size + ": "), std::string::npos) << done.out;
}

/// Of a program's results: "frames_in: 60".
int64_t count_in(const std::string& results, const std::string& key) {
  const std::size_t at = results.find(key + ": ");
  return at == std::string::npos ? -1 : std::stoll(results.substr(at + key.size() + 2));
}

TEST_F(VideoFiles, AnAddressIsReadAsItComes) {
  if (!has_ffprobe() || test::shell("ffmpeg -version && python3 --version").code != 0)
    GTEST_SKIP() << "NOT TESTED: ffmpeg's programs or python3 are not installed";
  write_small_movie(dir_ / "in.mp4", 60);
  if (test::shell("ffprobe -v error -show_streams '" + (dir_ / "in.mp4") + "'").out.find("h264") ==
      std::string::npos)
    GTEST_SKIP() << "NOT TESTED: FFmpeg has no libx264";
  const auto done = test::shell(
      "cd '" + (dir_ / ".") + "'\npython3 '" + CYTRA_SOURCE_DIR "/tests/pipelines/rtsp_server.py" +
      "' in.mp4 > address & server=$!\nfor i in $(seq 100); do [ -s address ] && break; sleep 0.1; "
      "done\ntimeout -k 5 60 " +
      program("'\"$(cat address)\"'", "out.mp4") + "; code=$?; kill $server; exit $code");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("rtsp://127.0.0.1"), std::string::npos) << done.err;
  const int64_t frames = count_in(done.out, "frames_in");
  EXPECT_GE(frames, 55) << "but for those before the client played: " << done.out;
  EXPECT_EQ(count_in(done.out, "frames_written") + count_in(done.out, "frames_dropped"), frames);
  EXPECT_EQ(static_cast<int64_t>(frames_of_video(dir_ / "out.mp4").size()),
            count_in(done.out, "frames_written"));
}

TEST_F(VideoFiles, ASignalLeavesAPlayableVideoOrNone) {
  write_small_movie(dir_ / "whole.mkv", 300, 0);
  const auto half = static_cast<int64_t>(fs::file_size(dir_ / "whole.mkv")) / 2;
  // Half of a video goes into a FIFO; when much of it is written, the signal comes.
  const auto signalled = [&](const std::string& signal) {
    fs::remove(dir_ / "pipe");
    return test::shell(
        "cd '" + (dir_ / ".") + "'\ntouch mark; sleep 0.01; mkfifo pipe; { head -c " +
        std::to_string(half) + " whole.mkv; exec sleep 60; } > pipe & feeder=$!\n" +
        program("pipe", "out.mp4") +
        " video.live=off video.crf=0 & work=$!\nfor i in $(seq 300); do [ -n \"$(find . -name "
        "\".out.mp4.tmp*\" -newer mark -size +20k)\" ] && break; sleep 0.1; done\nkill -" +
        signal + " $work; wait $work; code=$?; kill $feeder; exit $code");
  };
  const auto killed = signalled("KILL");
  EXPECT_EQ(killed.code, 137) << killed.err;
  EXPECT_FALSE(fs::exists(dir_ / "out.mp4"));
  const auto ended = signalled("INT");
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_NE(ended.err.find("interrupted: out.mp4 ends at"), std::string::npos) << ended.err;
  const std::vector<io::VideoFrame> frames = frames_of_video(dir_ / "out.mp4");
  EXPECT_GT(frames.size(), 3U);
  EXPECT_LT(frames.size(), 300U);
  for (const auto& entry : fs::directory_iterator(dir_ / "."))
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
}

}  // namespace
}  // namespace cytra::pipelines
