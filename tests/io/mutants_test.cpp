// Damaged images of every format: an error or an image, never a crash, a hang or much memory.
// CYTRA_MUTANTS: how many per format (2000).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

#include <sys/resource.h>
#include <zlib.h>

#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlower = 4;
constexpr long kMostMemory = 0;  // a sanitizer keeps what is freed
#else
constexpr double kSlower = 1;
constexpr long kMostMemory = 700L << 10;  // in KiB: a few times 64 MB, of the pixels and on the way
#endif

using Random = std::mt19937;
std::size_t below(Random& random, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

/// One change or a few: bits, bytes, fields of absurd values, digits, cuts, pieces moved.
std::string mutant(std::string bytes, Random& random) {
  static constexpr const char* kAbsurd[] = {"\xff\xff\xff\xff\xff\xff\xff\xff",
                                            "\0\0\0\0\0\0\0\0",
                                            "\xff\xff\xff\x7f\0\0\0\0",
                                            "\x7f\xff\xff\xff\0\0\0\0",
                                            "\0\0\0\x80\0\0\0\0",
                                            "\0\0\1\0\0\0\1\0",
                                            "\xff\x7f\xff\x7f\xff\x7f\xff\x7f"};
  // Headers lie at the beginning, of some formats at the end
  const auto place = [&] {
    const std::size_t near = std::min<std::size_t>(bytes.size(), 400);
    const std::size_t kind = below(random, 4);
    return kind == 0   ? below(random, bytes.size())
           : kind == 1 ? bytes.size() - 1 - below(random, near)
                       : below(random, near);
  };
  for (std::size_t changes = 1 + below(random, 3); changes > 0; --changes) {
    const std::size_t at = place();
    switch (below(random, 8)) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(random, 8));
        break;
      case 2:
        bytes[at] = static_cast<char>(below(random, 256));
        break;
      case 3:
      case 4: {
        constexpr std::size_t kSizes[] = {1, 2, 4, 8};
        const std::size_t size = std::min(kSizes[below(random, 4)], bytes.size() - at);
        bytes.replace(at, size, kAbsurd[below(random, std::size(kAbsurd))], size);
        break;
      }
      case 5: {  // numbers of a text
        const std::size_t digit = bytes.find_first_of("0123456789", at);
        if (digit != std::string::npos)
          bytes.insert(digit, std::string(1 + below(random, 12), "0159"[below(random, 4)]));
        break;
      }
      case 6: {
        const std::string piece = bytes.substr(at, below(random, 40));
        bytes.replace(place(), below(random, 2) == 0 ? piece.size() : 0, piece);
        break;
      }
      default:
        if (below(random, 3) == 0) bytes.resize(std::max<std::size_t>(at, 1));
    }
  }
  return bytes;
}

/// A PNG's parts with the checksums that they would have, or hardly a mutant came through.
std::string with_checksums(std::string bytes) {
  const auto number = [&](std::size_t at) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const std::size_t size = number(at);
    if (size > bytes.size() - at - 12) break;
    const auto crc = ::crc32(
        0, reinterpret_cast<const Bytef*>(bytes.data() + at + 4), static_cast<uInt>(size + 4));
    for (std::size_t i = 0; i < 4; ++i)
      bytes[at + 8 + size + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += size + 12;
  }
  return bytes;
}

std::string what_happens(const std::string& path) {
  try {
    Selection selection;
    std::unique_ptr<ImageReader> reader;
    try {
      reader = open_image(path, selection);
    } catch (const DataError&) {
      selection.timepoint = 0;
      reader = open_image(path, selection);
    }
    const ImageInfo& info = reader->info();
    reader->read({{info.shape[1] - 1, info.shape[2] / 2, info.shape[3] / 2}, {1, 1, 1}});
    const Image image = reader->read({});
    if (image.shape != info.shape || image.pixels.size() != image.bytes()) return "another shape";
    if (info.levels > 1) {
      selection.level = info.levels - 1;
      open_image(path, selection)->read({});
    }
    if (info.scenes > 1) {
      selection = {};
      selection.scene = info.scenes - 1;
      open_image(path, selection)->read({});
    }
  } catch (const DataError& error) {
    const std::string message = error.what();
    const bool is_complete =
        message.rfind(path, 0) == 0 && message.find("expected") != std::string::npos;
    return is_complete ? "" : "message: " + message;
  } catch (const ConfigError& error) {  // another file that is not there
    return std::strstr(error.what(), "No such file") != nullptr ? "" : error.what();
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  }
  return "";
}

void run_mutants(const std::vector<std::string>& extensions,
                 const std::vector<std::string>& more = {}) {
  const Folder folder;
  std::vector<std::string> sources = more;
  const std::string golden = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/";
  for (const char* name : {"images", "tiff"}) {
    for (const auto& entry : std::filesystem::directory_iterator(golden + name)) {
      const std::string path = entry.path().string();
      for (const std::string& extension : extensions) {
        if (path.size() > extension.size() &&
            path.compare(path.size() - extension.size(), std::string::npos, extension) == 0)
          sources.push_back(path);
      }
    }
  }
  std::sort(sources.begin(), sources.end());
  ASSERT_FALSE(sources.empty());
  const char* wanted = std::getenv("CYTRA_MUTANTS");
  const int count = wanted != nullptr ? std::atoi(wanted) : 2000;
  Random random(11);
  for (int i = 0; i < count; ++i) {
    const std::string& source = sources[below(random, sources.size())];
    const std::string extension = source.substr(source.find('.', source.rfind('/')));
    const std::string path = folder / ("mutant" + extension);
    std::string bytes = mutant(bytes_of(source), random);
    if (extension == ".png") bytes = with_checksums(bytes);
    if (extension == ".hdr" && i % 2 == 0)
      put(folder / "mutant.img", bytes_of(source.substr(0, source.size() - 3) + "img"));
    put(path, bytes);
    double seconds = 1e9;
    std::string found;
    for (int attempt = 0; attempt < 3 && seconds > kSlower;
         ++attempt) {  // others use the machine, too
      const auto start = std::chrono::steady_clock::now();
      found = what_happens(path);
      const auto end = std::chrono::steady_clock::now();
      seconds = std::min(seconds, std::chrono::duration<double>(end - start).count());
    }
    const bool is_wrong = !found.empty() || seconds > kSlower;
    if (is_wrong) {
      const std::string kept =
          ::testing::TempDir() + "/cytra_mutant_" + std::to_string(i) + extension;
      put(kept, bytes);
      ADD_FAILURE() << source << ", mutant " << i << ": " << found << " in " << seconds
                    << " s; kept as " << kept;
      if (::testing::Test::HasFailure() && i > count / 2) return;
    }
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  if (kMostMemory > 0) {
    EXPECT_LT(usage.ru_maxrss, kMostMemory);
  }
}

TEST(Mutants, Tiff) {
  run_mutants({".tif"});
}
TEST(Mutants, Nifti) {
  run_mutants({".nii", ".nii.gz", ".hdr"});
}
TEST(Mutants, Npy) {
  run_mutants({".npy"});
}
TEST(Mutants, Jpeg) {
  run_mutants({".jpg", ".jpeg"});
}
TEST(Mutants, Jpeg2000) {
  run_mutants({".jp2", ".j2k"});
}
TEST(Mutants, Png) {
  const Folder folder;
  std::vector<std::string> sources;
  for (const Dtype dtype : {Dtype::u8, Dtype::u16}) {
    for (const int64_t channels : {1, 3}) {
      sources.push_back(folder / ("a" + std::to_string(sources.size()) + ".png"));
      write_png(sources.back(), make_image(dtype, {channels, 1, 9, 13}));
    }
  }
  run_mutants({}, sources);
}

}  // namespace
}  // namespace cytra::io
