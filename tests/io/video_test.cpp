// Lossless videos as ffmpeg writes them: tests/golden/make_video.py.
#include <chrono>
#include <cstring>
#include <thread>

#include <nlohmann/json.hpp>

#include "io/video_stream.h"
#include "tests/io/golden_cases.h"
#include "tests/io/module_fixture.h"
#include "tests/support/at_least.h"

namespace cytra::io {
namespace {

using nlohmann::json;

std::string golden_video(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/video/" + name;
}
json video_cases() {
  return test::at_least(6, json::parse(bytes_of(golden_video("cases.json"))));
}
Image frame_of(const std::string& path, int64_t frame) {
  Selection selection;
  selection.timepoint = frame;
  return read_image(path, selection);
}

TEST(Video, EveryFrameIsTheOneThatWasWritten) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  int count = 0;
  for (const json& entry : video_cases()) {
    const std::string path = golden_video(entry["file"]);
    SCOPED_TRACE(path);
    const auto frames = static_cast<int64_t>(entry["crc32"].size());
    // Forwards, backwards and in between
    for (const int64_t step : {1, -1, 7}) {
      for (int64_t i = 0; i < frames; ++i) {
        const int64_t frame = ((i * step) % frames + frames) % frames;
        const Image image = frame_of(path, frame);
        EXPECT_EQ(json(image.shape), entry["shape"]);
        ASSERT_EQ(crc_of(image), entry["crc32"][static_cast<std::size_t>(frame)].get<uint32_t>())
            << "frame " << frame << ", step " << step;
        ++count;
      }
    }
    Selection first;
    first.timepoint = 0;
    const ImageInfo info = open_image(path, first)->info();
    EXPECT_EQ(info.timepoints, frames);
    EXPECT_EQ(info.dtype, Dtype::u8);
  }
  EXPECT_GT(count, 300);
}

TEST(Video, ThreadsReadEachTheirFrames) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const json all = video_cases();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const json& entry = all[static_cast<std::size_t>((t + i) % 2)];
        const int frame = (i * (t + 3)) % 25;
        if (crc_of(frame_of(golden_video(entry["file"]), frame)) !=
            entry["crc32"][frame].get<uint32_t>())
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Video, AskedForWithoutAFrameItIsAnError) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const auto message = [](const std::string& path, int64_t frame) {
    return message_of<DataError>([&] { frame_of(path, frame); });
  };
  EXPECT_NE(message(golden_video("ffv1.avi"), -1).find("25 time points, expected one"),
            std::string::npos);
  EXPECT_NE(message(golden_video("ffv1.avi"), 25).find("no time point 25, expected 0 to 24"),
            std::string::npos);
  EXPECT_TRUE(is_image_path("a.MP4"));
}

TEST(Video, FramesThatAnEditListLeavesOutAreNotCounted) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const Folder folder;
  for (const json& entry : video_cases()) {
    const std::string name = entry["file"];
    std::string bytes = bytes_of(golden_video(name));
    const std::size_t list = bytes.find("elst");
    if (list == std::string::npos || bytes[list + 4] != 0) continue;
    SCOPED_TRACE(name);
    // Its one entry's duration: 400 of 1000 ms, which are 10 of 25 frames
    ASSERT_EQ(bytes.substr(list + 8, 8), std::string("\0\0\0\1\0\0\x03\xe8", 8));
    bytes.replace(list + 12, 4, std::string("\0\0\x01\x90", 4));
    put(folder / name, bytes);
    Selection last;
    last.timepoint = 9;
    const auto reader = open_image(folder / name, last);
    EXPECT_EQ(reader->info().timepoints, 10);
    EXPECT_EQ(crc_of(reader->read({})), entry["crc32"][9].get<uint32_t>());
  }
}

TEST(Video, AFileThatIsWrittenAgainIsReadAgain) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const Folder folder;
  const json all = video_cases();
  put(folder / "a.avi", bytes_of(golden_video("ffv1.avi")));
  EXPECT_EQ(crc_of(frame_of(folder / "a.avi", 0)), all[0]["crc32"][0].get<uint32_t>());
  put(folder / "a.avi", bytes_of(golden_video("raw.avi")));
  Selection last;
  last.timepoint = 2;
  EXPECT_EQ(open_image(folder / "a.avi", last)->info().timepoints, 3);
}

TEST(Video, ACutFileNamesTheFrame) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const Folder folder;
  const std::string bytes = bytes_of(golden_video("raw.avi"));
  put(folder / "a.avi", bytes.substr(0, bytes.size() / 2));
  const std::string message = message_of<DataError>([&] { frame_of(folder / "a.avi", 2); });
  EXPECT_NE(message.find("expected"), std::string::npos) << message;
}

/// Texts that FFmpeg would read as videos, of a file beside them or elsewhere.
std::vector<std::pair<std::string, std::string>> playlists(const std::string& beside,
                                                           const std::string& elsewhere) {
  const std::string list = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n";
  return {{"concat.mp4", "ffconcat version 1.0\nfile '" + beside + "'\n"},
          {"concat.avi", "ffconcat version 1.0\nfile " + beside + "\nduration 1\n"},
          {"hls.mp4", list + "#EXTINF:1,\n" + elsewhere + "\n#EXT-X-ENDLIST\n"},
          {"hls.mkv", list + "#EXTINF:1,\nfile://" + elsewhere + "\n#EXT-X-ENDLIST\n"},
          {"dash.mp4",
           "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" "
           "profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\" type=\"static\" "
           "mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet mimeType=\"video/mp4\">"
           "<Representation id=\"1\" bandwidth=\"1\" width=\"64\" height=\"48\"><BaseURL>" +
               elsewhere + "</BaseURL></Representation></AdaptationSet></Period></MPD>"},
          {"sdp.mp4", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nt=0 0\nm=video 9 RTP/AVP 96\n"}};
}

TEST(Video, PlaylistsAreNotOpened) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const Folder folder;
  put(folder / "beside.mp4", bytes_of(golden_video("h264.mp4")));
  for (const auto& [name, text] : playlists("beside.mp4", golden_video("h264.mp4"))) {
    put(folder / name, text);
    EXPECT_NE(message_of<DataError>([&] { frame_of(folder / name, 0); }), "") << name;
  }
}

TEST(VideoStream, PlaylistsAreNotOpened) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const Folder folder;
  put(folder / "beside.mp4", bytes_of(golden_video("h264.mp4")));
  for (const auto& [name, text] : playlists("beside.mp4", golden_video("h264.mp4"))) {
    put(folder / name, text);
    const std::string message = message_of<DataError>([&] { open_video_source(folder / name); });
    EXPECT_NE(message, "") << name;
    // A description of a session is known by its whole length alone
    EXPECT_TRUE(name == "sdp.mp4" ||
                message.find("playlists, which name others, are not opened") != std::string::npos)
        << name << message;
  }
}

TEST(VideoStream, AllGoldenVideosAreStillOpened) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  for (const json& entry : video_cases()) {
    VideoFrame frame;
    EXPECT_TRUE(open_video_source(golden_video(entry["file"]))->read(frame)) << entry["file"];
  }
}

TEST(VideoStream, GreyWithoutARangeHasTheWholeOne) {  // a ramp, as OpenCV and PyAV read it
  SKIP_WITHOUT_MODULE("ffmpeg");
  for (const json& entry : test::at_least(4, json::parse(bytes_of(golden_video("grey.json"))))) {
    VideoFrame frame;
    ASSERT_TRUE(open_video_source(golden_video(entry["file"]))->read(frame));
    const auto expected = entry["row"].get<std::vector<int>>();
    for (std::size_t x = 0; x < expected.size(); ++x)
      EXPECT_NEAR(int{frame.rgb[3 * x]}, expected[x], 1) << entry["file"] << " " << x;
  }
}

TEST(Video, ColoursAreByTheMatrixOfTheFile) {  // BT.709, as PyAV reads it
  SKIP_WITHOUT_MODULE("ffmpeg");
  for (const json& entry : test::at_least(1, json::parse(bytes_of(golden_video("colour.json"))))) {
    const Image image = frame_of(golden_video(entry["file"]), 0);
    const std::size_t plane = image.pixels.size() / 3;
    for (std::size_t i = 0; i < entry["patches"].size(); ++i) {
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(int{image.pixels[c * plane + 8 * i]}, entry["patches"][i][c].get<int>(), 2)
            << i << " " << c;
    }
  }
}

TEST(Video, IsShownUpright) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  const Folder folder;
  const Image stored = frame_of(golden_video("h264.mp4"), 3);
  const int64_t h = stored.shape[2], w = stored.shape[3];
  // tkhd's matrix, 16.16: a quarter clockwise, half a turn, three quarters.
  // ISO/IEC 14496-12, 8.3.2.
  const int turns[3][4] = {{0, 1, -1, 0}, {-1, 0, 0, -1}, {0, -1, 1, 0}};
  for (int turn = 1; turn <= 3; ++turn) {
    SCOPED_TRACE(turn);
    std::string bytes = bytes_of(golden_video("h264.mp4"));
    const std::size_t matrix = bytes.find("tkhd") + 4 + 40;
    for (const auto& [place, i] : {std::pair{0, 0}, {4, 1}, {12, 2}, {16, 3}}) {
      const int value = turns[turn - 1][i];
      const std::string fixed = value == 0  ? std::string("\0\0\0\0", 4)
                                : value > 0 ? std::string("\0\1\0\0", 4)
                                            : std::string("\xff\xff\0\0", 4);
      bytes.replace(matrix + static_cast<std::size_t>(place), 4, fixed);
    }
    const std::string path = folder / ("turned" + std::to_string(turn) + ".mp4");
    put(path, bytes);
    const Image image = frame_of(path, 3);
    const int64_t shown_w = turn == 2 ? w : h;
    ASSERT_EQ(image.shape, (std::array<int64_t, 4>{3, 1, turn == 2 ? h : w, shown_w}));
    for (int64_t y = 0; y < h; ++y) {
      for (int64_t x = 0; x < w; ++x) {
        const int64_t to_y = turn == 1   ? x
                             : turn == 2 ? h - 1 - y
                                         : w - 1 - x,
                      to_x = turn == 1   ? h - 1 - y
                             : turn == 2 ? w - 1 - x
                                         : y;
        for (int64_t c = 0; c < 3; ++c)
          ASSERT_EQ(image.pixels[static_cast<std::size_t>(c * h * w + to_y * shown_w + to_x)],
                    stored.pixels[static_cast<std::size_t>(c * h * w + y * w + x)]);
      }
    }
  }
}

TEST(Video, StatesNoMoreFramesThanItHas) {  // 33 kB that state a million
  SKIP_WITHOUT_MODULE("ffmpeg");
  const Folder folder;
  std::string bytes;
  for (const json& entry : video_cases()) {
    const std::string name = entry["file"];
    if (name.size() > 4 && name.substr(name.size() - 4) == ".avi")
      bytes = bytes_of(golden_video(name));
  }
  if (bytes.empty()) GTEST_SKIP() << "no AVI among the golden videos";
  for (const uint32_t stated : {1'000'000U, 99'000'000U}) {
    std::string forged = bytes;
    for (const auto& [chunk, offset] : {std::pair{"avih", 8 + 16}, {"strh", 8 + 32}}) {
      const std::size_t at = forged.find(chunk);
      ASSERT_NE(at, std::string::npos);
      std::memcpy(&forged[at + static_cast<std::size_t>(offset)], &stated, 4);
    }
    put(folder / "forged.avi", forged);
    Selection first;
    first.timepoint = 0;
    const std::string message =
        message_of<DataError>([&] { open_image(folder / "forged.avi", first); });
    EXPECT_NE(message.find("frames end at"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace cytra::io
