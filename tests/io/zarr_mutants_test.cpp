// Damaged Zarr folders: an error or an image, soon. CYTRA_MUTANTS=20000 for more of them.
#include <cstdlib>
#include <ctime>
#include <map>

#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t count) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::size_t>(state_ >> 33) % count;
  }

 private:
  uint64_t state_;
};

void replace_number(std::string& text, Random& random) {
  std::vector<std::size_t> digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (is_digit && (i == 0 || text[i - 1] < '0' || text[i - 1] > '9')) digits.push_back(i);
  }
  if (digits.empty()) return;
  const std::size_t at = digits[random.below(digits.size())];
  std::size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  constexpr const char* kNumbers[] = {"0",
                                      "-1",
                                      "1",
                                      "2",
                                      "7",
                                      "100",
                                      "65537",
                                      "2147483648",
                                      "4294967297",
                                      "1099511627776",
                                      "9223372036854775807",
                                      "18446744073709551615",
                                      "1e308",
                                      "null",
                                      "\"NaN\"",
                                      "[]",
                                      "{}",
                                      "true",
                                      "0.5",
                                      "1e999"};
  text.replace(at, end - at, kNumbers[random.below(std::size(kNumbers))]);
}

void mutate(std::string& bytes, const std::string& other, Random& random) {
  const std::size_t kind = random.below(8);
  if (kind == 0) {
    bytes.resize(random.below(bytes.size() + 1));
  } else if (kind == 1) {
    replace_number(bytes, random);
  } else if (kind == 2) {  // part of another file
    const std::size_t from = random.below(other.size() + 1);
    bytes.insert(random.below(bytes.size() + 1), other.substr(from, random.below(40)));
  } else if (kind == 3 && !bytes.empty()) {
    bytes.erase(random.below(bytes.size()), random.below(20));
  } else if (kind == 4 && bytes.size() >= 8) {  // absurd sizes in binary headers
    constexpr const char* kSizes[] = {
        "\xff\xff\xff\xff", "\xff\xff\xff\x7f", "\0\0\0\x40", "\0\0\0\0", "\1\0\0\0"};
    bytes.replace(random.below(std::min<std::size_t>(bytes.size() - 4, 32)),
                  4,
                  std::string(kSizes[random.below(5)], 4));
  } else if (!bytes.empty()) {
    for (std::size_t n = 1 + random.below(4); n > 0; --n)
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
  }
}

// For both time points; of the processor, as others may use the machine.
#ifdef __SANITIZE_ADDRESS__
constexpr double kMostSeconds = 4;
#else
constexpr double kMostSeconds = 2;
#endif

void read_all(const std::string& path) {
  for (const int64_t timepoint : {-1, 0}) {
    try {
      const auto reader = open_image(path, {0, 0, timepoint, {}});
      const auto& shape = reader->info().shape;
      double bytes = static_cast<double>(size_of(reader->info().dtype));
      for (const int64_t side : shape) bytes *= static_cast<double>(side);
      const Region corner{{shape[1] / 2, shape[2] / 2, shape[3] / 2},
                          {1, 1, std::min<int64_t>(3, shape[3] - shape[3] / 2)}};
      EXPECT_EQ(reader->read(corner).shape[3], corner.size[2]);
      if (bytes < 256e6 || bytes > 1.1e9) reader->read({});
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(path, 0), 0U) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    } catch (const ConfigError&) {  // a name too long for the system
    }
  }
}

TEST(ZarrMutants, EndInAnErrorOrAnImage) {
  const char* asked = std::getenv("CYTRA_MUTANTS");
  const int count = asked != nullptr ? std::atoi(asked) : 2000;
  const Folder folder;
  std::vector<std::string> images;
  for (const char* version : {"v2", "v3"}) {
    const std::string golden = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/zarr/" + version;
    for (const auto& entry : fs::directory_iterator(golden)) {
      images.push_back(folder / (version + entry.path().filename().string()));
      fs::copy(entry.path(), images.back(), fs::copy_options::recursive);
    }
  }
  std::sort(images.begin(), images.end());
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> files;  // path, content
  for (const std::string& image : images) {
    for (const auto& entry : fs::recursive_directory_iterator(image)) {
      if (entry.is_regular_file())
        files[image].emplace_back(entry.path().string(), bytes_of(entry.path().string()));
    }
    std::sort(files[image].begin(), files[image].end());
  }
  Random random(asked != nullptr ? static_cast<uint64_t>(count) : 1);
  double slowest = 0;
  for (int i = 0; i < count; ++i) {
    const std::string& image = images[random.below(images.size())];
    const auto& list = files[image];
    // Metadata half of the time: there are many more chunks.
    std::size_t which = random.below(list.size());
    for (int k = 0; k < 20 && random.below(2) == 0; ++k) {
      const std::string name = fs::path(list[which].first).filename().string();
      if (name[0] == '.' || name == "zarr.json") break;
      which = random.below(list.size());
    }
    const auto& [path, content] = list[which];
    std::string bytes = content;
    for (std::size_t n = 1 + random.below(2); n > 0; --n)
      mutate(bytes, list[random.below(list.size())].second, random);
    put(path, bytes);
    const std::clock_t start = std::clock();
    ASSERT_NO_THROW(read_all(image)) << "mutant " << i << " of " << path;
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    slowest = std::max(slowest, seconds);
    EXPECT_LT(seconds, kMostSeconds) << "mutant " << i << " of " << path;
    put(path, content);
  }
  RecordProperty("slowest_ms", static_cast<int>(1000 * slowest));
  if (asked != nullptr) std::printf("slowest of %d mutants: %.0f ms\n", count, 1000 * slowest);
}

}  // namespace
}  // namespace cytra::io
