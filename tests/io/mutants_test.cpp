// Damaged files of every format: an error or an image, never a crash, a hang or much memory.
// CYTRA_MUTANTS: how many per format (1000). Bombs made by hand are in bombs_test.cpp.
#include "tests/io/mutants.h"

#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>

#include <tiffio.h>
#include <zlib.h>

#include "tests/io/fixture.h"
#include "tests/io/heap.h"
#include "tests/io/module_fixture.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

// For all of check_image(), which keeps one whole image of 64 MB and makes another.
constexpr int64_t kMostHeap = int64_t{300} << 20;
// A chunk of Zarr may have 1 GB, whatever the size of its file.
constexpr int64_t kMostZarrHeap = int64_t{2400} << 20;

int mutant_count() {
  const char* wanted = std::getenv("CYTRA_MUTANTS");
  return wanted != nullptr ? std::atoi(wanted) : 1000;
}

/// Runs checks, and keeps the longest and the largest of them.
class Watch {
 public:
  explicit Watch(int64_t most_heap) : most_heap_(most_heap) {}
  ~Watch() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    if (std::getenv("CYTRA_MUTANTS") == nullptr) return;
    std::printf("%s: slowest %.0f ms (mutant %d), most heap %.1f MB, %d mutants\n",
                name.c_str(),
                1000 * slowest_,
                slowest_run_,
                static_cast<double>(largest_) / 1e6,
                runs_);
  }
  /// What `check` found, or that it took too long or too much; "" for nothing.
  std::string run(const std::function<std::string()>& check) {
    const heap::Peak peak;
    const std::clock_t start = std::clock();  // of the processor, as others may use the machine
    std::string found = check();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ++runs_;
    if (seconds > slowest_) {
      slowest_ = seconds;
      slowest_run_ = runs_ - 1;
    }
    largest_ = std::max(largest_, peak.bytes());
    if (seconds > kSlower) found += " took " + std::to_string(seconds) + " s";
    if (heap::is_counted && peak.bytes() > most_heap_)
      found += " took " + std::to_string(peak.bytes()) + " bytes";
    return found;
  }

 private:
  int64_t most_heap_, largest_ = 0;
  double slowest_ = 0;
  int runs_ = 0, slowest_run_ = 0;
};

struct Source {
  std::string extension, bytes;
  std::vector<int64_t> sizes;
  std::string partner;  // of a .hdr: its .img
};
using Change = std::function<void(std::string& bytes, Random& random)>;
using Check = std::function<std::string(const std::string& path, uint64_t seed)>;

Source source_of(const std::string& path) {
  const fs::path file(path);
  Source source{
      file.filename().string().substr(file.filename().string().find('.')), bytes_of(path), {}, ""};
  for (const int64_t timepoint : {-1, 0}) {
    try {
      const ImageInfo info = open_image(path, {0, 0, timepoint, {}})->info();
      source.sizes.assign(info.shape.begin(), info.shape.end());
    } catch (const DataError&) {  // several time points, or none of our images
    }
  }
  if (source.extension == ".hdr")
    source.partner = bytes_of(path.substr(0, path.size() - 3) + "img");
  return source;
}

/// The golden files with these extensions.
std::vector<Source> golden_sources(const std::vector<std::string>& extensions,
                                   const std::vector<std::string>& folders = {
                                       "images", "tiff", "tiff_family", "ome_set"}) {
  std::vector<std::string> paths;
  for (const std::string& name : folders) {
    const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/" + name;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string path = entry.path().string();
      for (const std::string& extension : extensions) {
        if (path.size() > extension.size() &&
            path.compare(path.size() - extension.size(), std::string::npos, extension) == 0)
          paths.push_back(path);
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Source> sources;
  for (const std::string& path : paths) sources.push_back(source_of(path));
  return sources;
}

/// `own` knows the format, `finish` mends what would keep any damage from coming through.
void run_mutants(const std::vector<Source>& sources,
                 const Change& own,
                 const Change& finish = {},
                 const Check& check = check_image) {
  ASSERT_FALSE(sources.empty());
  const Folder folder;
  Watch watch(kMostHeap);
  int wrong = 0;
  for (int i = 0; i < mutant_count() && wrong < 10; ++i) {
    Random random(static_cast<uint64_t>(i));
    const Source& source = sources[random.below(sources.size())];
    std::string bytes = source.bytes;
    for (std::size_t n = 1 + random.below(3); n > 0; --n) {
      if (own && random.below(2) == 0) {
        own(bytes, random);
      } else {
        change_bytes(bytes, sources[random.below(sources.size())].bytes, source.sizes, random);
      }
    }
    if (finish) finish(bytes, random);
    const std::string path = folder / ("mutant" + source.extension);
    if (!source.partner.empty()) {
      std::string partner = source.partner;
      if (random.below(3) == 0) change_bytes(partner, source.bytes, source.sizes, random);
      put(folder / "mutant.img", partner);
    }
    put(path, bytes);
    const std::string found = watch.run([&] { return check(path, static_cast<uint64_t>(i)); });
    if (found.empty()) continue;
    ++wrong;
    const std::string kept =
        ::testing::TempDir() + "/cytra_mutant_" + std::to_string(i) + source.extension;
    put(kept, bytes);
    ADD_FAILURE() << "mutant " << i << " " << found << "; kept as " << kept;
  }
}

TEST(Mutants, DISABLED_KeptFile) {  // CYTRA_MUTANT: the path of one that failed before
  const char* path = std::getenv("CYTRA_MUTANT");
  ASSERT_NE(path, nullptr);
  for (uint64_t seed = 0; seed < 100; ++seed) EXPECT_EQ(check_image(path, seed), "");
}

TEST(Mutants, Tiff) {
  const Folder folder;
  std::vector<Source> sources = golden_sources({".tif"});
  using Compression = WriteOptions::Compression;
  for (const auto compression :
       {Compression::none, Compression::deflate, Compression::lzw, Compression::zstd}) {
    for (const bool is_bigtiff : {false, true}) {
      WriteOptions options;
      options.compression = compression;
      options.tile = is_bigtiff ? 16 : 0;
      options.levels = is_bigtiff ? 2 : 1;
      options.is_bigtiff = is_bigtiff;
      write_ome_tiff(folder / "a.ome.tif", make_image(Dtype::u16, {2, 2, 40, 33}), options);
      sources.push_back(source_of(folder / "a.ome.tif"));
    }
  }
  run_mutants(sources, change_directory);
}

TEST(Mutants, TiffOfMicroscopes) {  // damage anywhere: much of them is description
  run_mutants(golden_sources({".lsm", ".stk"}, {"tiff_family"}), change_directory);
}

/// Of a large strip no more is kept than its compressed bytes.
TEST(Memory, OfALargeTiffStrip) {
  if (!heap::is_counted) GTEST_SKIP() << "allocations are not counted here";
  const Folder folder;
  const std::string path = folder / "strip.tif";
  constexpr uint32_t kSide = 8000;
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kSide);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kSide);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, kSide);
  std::vector<unsigned char> pixels(std::size_t{kSide} * kSide, 9);
  TIFFWriteEncodedStrip(tiff, 0, pixels.data(), static_cast<tmsize_t>(pixels.size()));
  TIFFClose(tiff);
  const auto reader = open_image(path);
  const heap::Peak peak;
  EXPECT_EQ(reader->read({{0, 5000, 100}, {1, 512, 512}}).pixels,
            std::vector<unsigned char>(512 * 512, 9));
  EXPECT_LT(peak.bytes(), 4 << 20);  // decoded it is 64 MB
}

TEST(Mutants, TiffDescription) {  // OME-XML, ImageJ's, tifffile's
  std::vector<Source> sources;
  for (Source& source : golden_sources({".tif"})) {
    for (const char* mark : {"<OME", "ImageJ=", "{\"shape\""}) {
      if (source.bytes.find(mark) != std::string::npos) sources.push_back(source);
    }
  }
  run_mutants(sources, change_description);
}

TEST(Mutants, Nifti) {
  run_mutants(golden_sources({".nii", ".hdr"}), {});
}

std::string inflated(const std::string& bytes) {
  std::string plain(1 << 16, '\0');
  z_stream stream{};
  ::inflateInit2(&stream, 16 + MAX_WBITS);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  ::inflate(&stream, Z_FINISH);
  plain.resize(stream.total_out);
  ::inflateEnd(&stream);
  return plain;
}
std::string deflated(const std::string& plain) {
  std::string bytes(plain.size() + 1000, '\0');
  z_stream stream{};
  ::deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  ::deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  ::deflateEnd(&stream);
  return bytes;
}

TEST(Mutants, NiftiGzip) {
  std::vector<Source> sources = golden_sources({".nii.gz"});
  ASSERT_FALSE(sources.empty());
  const std::vector<Source> plain = golden_sources({".nii"});
  run_mutants(sources, [&](std::string& bytes, Random& random) {  // damage below the compression
    const Source& source = plain[random.below(plain.size())];
    std::string inner = random.below(2) == 0 ? inflated(bytes) : source.bytes;
    change_bytes(inner, source.bytes, source.sizes, random);
    bytes = deflated(inner);
  });
}

TEST(Mutants, Nrrd) {  // their headers are texts
  run_mutants(golden_sources({".nrrd"}, {"nrrd_metaimage"}), change_text);
}

TEST(Mutants, MetaImage) {
  run_mutants(golden_sources({".mha"}, {"nrrd_metaimage"}), change_text);
}

TEST(Mutants, Npy) {
  run_mutants(golden_sources({".npy"}), [](std::string& bytes, Random& random) {
    std::string header = bytes.substr(0, 128);
    change_text(header, random);
    header.resize(std::min<std::size_t>(bytes.size(), 128), ' ');
    bytes.replace(0, header.size(), header);
  });
}

TEST(Mutants, Jpeg) {
  run_mutants(golden_sources({".jpg", ".jpeg"}), {});
}

TEST(Mutants, Bmp) {
  run_mutants(golden_sources({".bmp", ".gif", ".webp"}), {});
}

TEST(Mutants, Jpeg2000) {
  run_mutants(golden_sources({".jp2", ".j2k"}), {});
}

/// A PNG's parts with the checksums that they would have, or hardly a mutant came through.
void set_checksums(std::string& bytes, Random& random) {
  if (random.below(8) == 0) return;
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const uint64_t size = number_at(bytes, at, 4, true);
    if (size > bytes.size() - at - 12) break;
    put_number(
        bytes,
        at + 8 + size,
        4,
        true,
        ::crc32(
            0, reinterpret_cast<const Bytef*>(bytes.data() + at + 4), static_cast<uInt>(size + 4)));
    at += size + 12;
  }
}

TEST(Mutants, Png) {
  const Folder folder;
  std::vector<Source> sources;
  for (const Dtype dtype : {Dtype::u8, Dtype::u16}) {
    for (const int64_t channels : {1, 3}) {
      write_png(folder / "a.png", make_image(dtype, {channels, 1, 9, 13}));
      sources.push_back(source_of(folder / "a.png"));
    }
  }
  const auto change_part = [](std::string& bytes, Random& random) {  // depth, colour, interlace
    if (bytes.size() > 29) bytes[24 + random.below(5)] = static_cast<char>(random.below(18));
  };
  run_mutants(sources, change_part, set_checksums);
}

TEST(Mutants, Table) {
  std::vector<Source> sources = {
      {".csv",
       "\xEF\xBB\xBFraw,seg,note\r\na.tif,b.tif,\"x, \"\"y\"\"\"\r\n\r\nc.tif,d.tif,\r\n",
       {},
       ""},
      {".tsv", "raw\tseg\na b.tif\t\"c\td.tif\"\n\xC3\xA4.tif\t=1.tif\n", {}, ""},
      {".csv", "raw\n../a.tif\n/b.tif\n\"a\nb\"\n", {}, ""}};
  run_mutants(sources, change_text, {}, [](const std::string& path, uint64_t) {
    return check_table(path);
  });
}

TEST(Mutants, Annotations) {
  std::vector<Source> sources;
  const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/annotations/";
  for (const char* name : {"rois.zip",
                           "stack.zip",
                           "fine.roi",
                           "qupath.geojson",
                           "coco.json",
                           "labelme.json",
                           "voc.xml",
                           "yolo/cells.txt"}) {
    const std::string extension = fs::path(name).extension().string();
    sources.push_back({extension, bytes_of(folder + name), {40, 48, 1}, ""});
  }
  const auto change = [](std::string& bytes, Random& random) {
    if (!bytes.empty() && (bytes[0] == '{' || bytes[0] == '[') && random.below(3) > 0) {
      change_json(bytes, random);
    } else {
      change_text(bytes, random);
    }
  };
  run_mutants(sources, change, {}, [](const std::string& path, uint64_t) {
    return check_annotations(path);
  });
}

TEST(Mutants, Safetensors) {
  const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/";
  std::vector<Source> sources;
  for (const char* name : {"adamw", "dice_metric", "dice_ce"})
    sources.push_back({".safetensors", bytes_of(folder + name + ".safetensors"), {}, ""});
  const auto change_header = [](std::string& bytes, Random& random) {
    const uint64_t size = number_at(bytes, 0, 8, false);
    if (bytes.size() < 8 || size > bytes.size() - 8) return;
    std::string header = bytes.substr(8, size);
    if (random.below(3) == 0) {
      change_text(header, random);
    } else {
      change_json(header, random);
    }
    bytes.replace(8, size, header);
    put_number(bytes, 0, 8, false, header.size());
  };
  run_mutants(sources, change_header, {}, [](const std::string& path, uint64_t) {
    return check_weights<SafetensorsFile>(path);
  });
}

/// The numbers of a pickle's operations and a ZIP directory lie anywhere: single bytes do it.
TEST(Mutants, Torch) {
  const std::string folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/torch";
  std::vector<Source> sources;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.file_size() < 10000)
      sources.push_back(
          {entry.path().extension().string(), bytes_of(entry.path().string()), {}, ""});
  }
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return a.bytes < b.bytes;
  });
  ASSERT_GE(sources.size(), 20U);
  const auto change_operation = [](std::string& bytes, Random& random) {
    constexpr std::string_view kOperations =
        "().}]Nabcdehjlqrstu012BCGJKMQRTUX\x81\x85\x86\x87\x88\x8a\x8b\x8c\x8d\x8f\x90\x93\x94";
    std::size_t begin = bytes.find("\x80\x02"), end = bytes.find("PK\7\10", begin);
    end = std::min(end, bytes.size());
    if (begin >= end) return;
    const std::size_t at = begin + random.below(end - begin);
    switch (random.below(4)) {
      case 0:
        bytes[at] = kOperations[random.below(kOperations.size())];
        break;
      case 1:
        bytes[at] = static_cast<char>(absurd(random));
        break;
      case 2:
        put_number(bytes, at, 4, false, absurd(random));
        break;
      default: {  // a piece from elsewhere, at the same length
        const std::string piece =
            bytes.substr(begin + random.below(end - begin), 1 + random.below(40));
        bytes.replace(at, std::min(piece.size(), bytes.size() - at), piece);
      }
    }
  };
  run_mutants(sources, change_operation, {}, [](const std::string& path, uint64_t) {
    return check_weights<TorchFile>(path);
  });
}

/// Of one Zarr version: damage to a file of an image's folder.
void run_zarr(const std::string& version) {
  const Folder folder;
  using Files = std::vector<std::pair<std::string, std::string>>;  // path, content
  std::vector<std::pair<std::string, Files>> images;
  const std::string golden_folder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/zarr/" + version;
  for (const auto& entry : fs::directory_iterator(golden_folder)) {
    images.emplace_back(folder / entry.path().filename().string(), Files{});
    fs::copy(entry.path(), images.back().first, fs::copy_options::recursive);
  }
  std::sort(images.begin(), images.end());
  for (auto& [image, files] : images) {
    for (const auto& entry : fs::recursive_directory_iterator(image)) {
      if (entry.is_regular_file())
        files.emplace_back(entry.path().string(), bytes_of(entry.path().string()));
    }
    std::sort(files.begin(), files.end());
  }
  Watch watch(kMostZarrHeap);
  int wrong = 0;
  for (int i = 0; i < mutant_count() && wrong < 10; ++i) {
    Random random(static_cast<uint64_t>(i));
    const auto& [image, files] = images[random.below(images.size())];
    std::size_t which = random.below(files.size());
    const auto is_metadata = [&] {
      const std::string name = fs::path(files[which].first).filename().string();
      return name[0] == '.' || name == "zarr.json";
    };
    // Metadata half of the time: there are many more chunks.
    for (int k = 0; k < 20 && random.below(2) == 0 && !is_metadata(); ++k)
      which = random.below(files.size());
    const auto& [path, content] = files[which];
    std::string bytes = content;
    for (std::size_t n = 1 + random.below(2); n > 0; --n) {
      if (is_metadata() && random.below(2) == 0) {
        change_json(bytes, random);
      } else {
        change_bytes(bytes, files[random.below(files.size())].second, {}, random);
      }
    }
    put(path, bytes);
    const std::string found =
        watch.run([&] { return check_image(image, static_cast<uint64_t>(i)); });
    EXPECT_EQ(found, "") << "mutant " << i << " of " << path << ":\n" << bytes.substr(0, 2000);
    wrong += !found.empty();
    put(path, content);
  }
}

TEST(Mutants, Zarr2) {
  run_zarr("v2");
}
TEST(Mutants, Zarr3) {
  run_zarr("v3");
}

TEST(Mutants, Dicom) {
  SKIP_WITHOUT_MODULE("dicom");
  run_mutants(golden_sources({".dcm"}, {"dicom"}), {});
}
TEST(Mutants, Hdf5) {
  SKIP_WITHOUT_MODULE("hdf5");
  run_mutants(golden_sources({".h5", ".hdf5", ".mat"}, {"hdf5"}), {});
}
TEST(Mutants, Video) {
  SKIP_WITHOUT_MODULE("ffmpeg");
  run_mutants(golden_sources({".avi", ".mp4", ".mkv", ".webm", ".mov"}, {"video"}), {});
}

}  // namespace
}  // namespace cytra::io
