#include "pipelines/batch_segment/batch_segment.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread_pool.h"
#include "data/sample/image_tensor.h"
#include "io/fingerprint.h"
#include "io/mapped_file.h"
#include "io/reader.h"
#include "ops/compute_alone.h"
#include "pipelines/batch_segment/compute.h"
#include "pipelines/job/stage_threads.h"

namespace cytra::pipelines {
namespace {

/// What identifies an image. For a file it is made of the bytes, so that a copy is the same image;
/// for a folder, a part of a file or several files, of the path and the files' sizes and times.
std::string content_of(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error || bytes == 0 || !std::filesystem::is_regular_file(path, error) ||
      !io::other_files_of(path).empty())
    return io::fingerprint(data::content_stamp(io::file_of(path)));
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_errno("can't be read", path, errno);
  std::unique_ptr<io::MappedFile> file;
  try {
    file = std::make_unique<io::MappedFile>(path, descriptor, bytes);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
  const io::MappedFile::Reading reading(*file, bytes);
  const std::string content = io::fingerprint(file->data(), file->size());
  reading.check();
  return content;
}

/// The memory that an image takes, by its header; 0 where it can't be read.
int64_t loaded_bytes(const std::string& path) {
  try {
    int64_t bytes = 4;
    for (const int64_t side : io::open_image(path)->info().shape) bytes *= side;
    return bytes;
  } catch (const Error&) {
    return 0;
  }
}

void group_views(std::vector<SegmentInput>& inputs) {
  std::map<std::string, std::size_t> order;  // in which they come
  for (const SegmentInput& input : inputs) order.emplace(input.view, order.size());
  std::ranges::stable_sort(
      inputs, [&](const auto& a, const auto& b) { return order.at(a.view) < order.at(b.view); });
}

/// An image may come again at any time.
data::CacheLimits embedding_limits(data::CacheLimits limits) {
  limits.replaces = true;
  return limits;
}

/// The tiles of an image that is larger than one, then the whole image; else none.
std::vector<Tile> segment_tiles(const at::Tensor& image, int64_t side) {
  DetectorOptions options;
  options.roi_size = {side};
  const int64_t height = image.size(1), width = image.size(2);
  std::vector<Tile> tiles = tiles_of({height, width}, options);
  if (tiles.size() == 1) return {};
  tiles.push_back({{0, 0}, {height, width}});
  return tiles;
}

}  // namespace

io::Image SegmentedImage::labels() const {
  if (objects.size() > UINT16_MAX) {
    throw DataError(
        "{}: {} objects, a label image of 16 bit holds 65535", input.path, objects.size());
  }
  io::Image image;
  image.dtype = io::Dtype::u16;
  image.shape = {1, 1, height, width};
  image.pixels.resize(image.bytes());
  auto* pixels = reinterpret_cast<uint16_t*>(image.pixels.data());
  for (std::size_t i = objects.size(); i > 0; --i)  // the best one last, over the others
    objects[i - 1].mask.paint(static_cast<uint16_t>(i), pixels);
  return image;
}

struct BatchSegmenter::Impl {
  Impl(SegmentModels given, BatchSegmentOptions chosen, c10::Device device, StageReport& report)
      : models(std::move(given)),
        options(std::move(chosen)),
        stages(report, options),
        compute(models, options, device, stages),
        cache(embedding_limits(options.cache)) {}

  bool uses_cache() const {
    return options.mode != "naive" &&
           (options.cache.ram_gb > 0 || !options.cache.cache_dir.empty());
  }
  std::string cache_key(const SegmentWork& work) const {
    const Tile& tile = work.tile;
    const std::string place =
        tile.first.empty()
            ? ""
            : fmt::format(" {} {}", fmt::join(tile.first, " "), fmt::join(tile.last, " "));
    return fmt::format("embedding {} {}{}", fingerprint, work.content, place);
  }
  /// Takes the encoding of an image, or of a part of one, from the cache; where it is not there,
  /// makes the square that is to be encoded. Thread: any.
  void prepare(SegmentWork& work, const at::Tensor& image, const PromptedSegmenter& segmenter);
  /// Loads the segmenter if needed. Thread: any. Throws: what loading throws.
  const PromptedSegmenter& segmenter();
  /// Reads an image, and its encoding where that is known. Thread: any.
  SegmentWork load(const SegmentInput& input, SegmentSink& sink);
  /// Any thread: writes it.
  void save(SegmentWork& work, SegmentSink& sink);
  void run_in_turn(const std::vector<SegmentInput>& inputs, SegmentSink& sink);
  void run_parallel(const std::vector<SegmentInput>& inputs, SegmentSink& sink);
  void work_on(std::vector<SegmentWork>& batch, SegmentSink& sink);

  const SegmentModels models;
  const BatchSegmentOptions options;
  SegmentStages stages;
  SegmentCompute compute;
  data::CacheManager cache;
  std::mutex segmenter_mutex;
  std::string fingerprint;  // of the segmenter, where there is a cache
  SegmentCounts counts;
};

const PromptedSegmenter& BatchSegmenter::Impl::segmenter() {
  const std::lock_guard lock(segmenter_mutex);
  const PromptedSegmenter& segmenter = compute.segmenter();
  if (uses_cache() && fingerprint.empty()) fingerprint = segmenter.fingerprint();
  return segmenter;
}

void BatchSegmenter::Impl::prepare(SegmentWork& work,
                                   const at::Tensor& image,
                                   const PromptedSegmenter& segmenter) {
  if (uses_cache()) {
    if (const auto entry = cache.get(cache_key(work)))
      work.embedding = entry->tensors.at("embedding").to(at::kFloat);
  }
  if (work.embedding.defined()) {
    work.square.placement = nn::place_in_square(image.size(1), image.size(2), segmenter.side());
  } else {
    work.square = segmenter.prepare(image);
  }
}

SegmentWork BatchSegmenter::Impl::load(const SegmentInput& input, SegmentSink& sink) {
  SegmentWork work;
  work.input = input;
  const auto fail = [&] {
    work.is_over = true;
    sink.leave_out(input, std::current_exception());
  };
  try {
    const StageWork timed(stages.load);
    work.content = content_of(input.path);
    work.is_over = !sink.wants(input, work.content);
  } catch (const std::exception&) {
    fail();
  }
  if (work.is_over) return work;
  const PromptedSegmenter& segmenter = this->segmenter();  // a run with nothing to do needs none
  try {
    const StageWork timed(stages.load, 0);
    work.image = data::to_tensor(io::read_image(input.path), 2, input.path);
    if (work.image.scalar_type() != at::kByte) work.image = work.image.to(at::kFloat);
    data::check_finite(work.image, input.path);
    const std::vector<Tile> tiles = segment_tiles(work.image, options.tile);
    if (tiles.empty()) {
      prepare(work, work.image, segmenter);
    } else {
      work.square.placement =
          nn::place_in_square(work.image.size(1), work.image.size(2), segmenter.side());
    }
    for (const Tile& tile : tiles) {
      SegmentWork& part = work.parts.emplace_back();
      part.content = work.content;
      part.tile = tile;
      prepare(part, tile.of(work.image), segmenter);
    }
  } catch (const std::exception&) {
    fail();
  }
  return work;
}

void BatchSegmenter::Impl::save(SegmentWork& work, SegmentSink& sink) {
  if (work.is_over) return;
  const StageWork timed(stages.save);
  try {
    for (const SegmentWork* unit : units_of(work)) {
      if (unit->is_new_embedding && uses_cache())
        cache.put(cache_key(*unit), {{{"embedding", unit->embedding.cpu().clone()}}, {}});
    }
    const nn::Placement& placement = work.square.placement;
    sink.take({work.input,
               work.content,
               placement.height,
               placement.width,
               objects_of(work, compute.segmenter())});
  } catch (const IoError&) {  // the disk is full, say
    throw;
  } catch (const ConfigError&) {  // the folder can't be written
    throw;
  } catch (const std::exception&) {
    sink.leave_out(work.input, std::current_exception());
  }
}

/// Boxes and masks of what was loaded.
void BatchSegmenter::Impl::work_on(std::vector<SegmentWork>& batch, SegmentSink& sink) {
  SegmentWorks works;
  for (SegmentWork& work : batch) {
    if (!work.is_over) works.push_back(&work);
  }
  if (works.empty()) return;
  {
    const StageWork timed(stages.compute, std::ssize(works));
    if (options.mode == "naive") {
      for (SegmentWork* work : works) compute.run_naively(*work, sink, counts);
    } else {
      compute.run(works, sink, counts);
    }
  }
  if (options.after_batch) options.after_batch();
}

void BatchSegmenter::Impl::run_in_turn(const std::vector<SegmentInput>& inputs, SegmentSink& sink) {
  const bool is_naive = options.mode == "naive";
  const auto most = is_naive ? 1 : static_cast<std::size_t>(options.image_batch_size);
  for (std::size_t first = 0; first < inputs.size(); first += most) {
    std::vector<SegmentWork> batch;
    for (std::size_t i = first; i < std::min(first + most, inputs.size()); ++i)
      batch.push_back(load(inputs[i], sink));
    work_on(batch, sink);
    for (SegmentWork& work : batch) save(work, sink);
    if (is_naive) compute.forget_models();
  }
}

void BatchSegmenter::Impl::run_parallel(const std::vector<SegmentInput>& inputs,
                                        SegmentSink& sink) {
  const int64_t memory = available_memory().bytes;
  const int64_t most_bytes = std::max<int64_t>(memory / 8, int64_t{64} << 20);
  const auto batch_size = static_cast<std::size_t>(options.image_batch_size);
  const auto workers = static_cast<std::size_t>(options.io_workers);
  // The largest image so far, in bytes: the next ones may be as large.
  std::atomic<int64_t> largest{loaded_bytes(inputs.front().path)};
  Queue<std::future<SegmentWork>> loaded(batch_size + workers, most_bytes);
  Queue<SegmentWork> made(batch_size + workers, most_bytes);
  ThreadPool loaders(workers);
  StageThreads threads([&](const std::exception_ptr& error) {
    loaded.fail(error);
    made.fail(error);
  });
  threads.start([&] {
    for (const SegmentInput& input : inputs) {
      const auto promise = std::make_shared<std::promise<SegmentWork>>();
      std::future<SegmentWork> future = promise->get_future();
      if (!loaded.push(std::move(future), largest)) return;
      loaders.post([this, promise, &input, &sink, &largest] {
        ops::compute_alone();
        const c10::InferenceMode inference_mode;
        try {
          SegmentWork work = load(input, sink);
          int64_t seen = largest;
          while (seen < work.bytes() && !largest.compare_exchange_weak(seen, work.bytes())) {
          }
          promise->set_value(std::move(work));
        } catch (...) {
          promise->set_exception(std::current_exception());
        }
      });
    }
    loaded.close();
  });
  for (std::size_t i = 0; i < workers; ++i) {
    threads.start([&] {
      ops::compute_alone();
      while (std::optional<SegmentWork> work = made.pop()) save(*work, sink);
    });
  }
  threads.finish([&] {
    for (bool is_last = false; !is_last;) {
      std::vector<SegmentWork> batch;
      while (!is_last && batch.size() < batch_size) {
        std::optional<std::future<SegmentWork>> next = loaded.pop();
        is_last = !next;
        if (next) batch.push_back(next->get());
        if (!batch.empty() && batch.back().is_over) batch.pop_back();
      }
      work_on(batch, sink);
      for (SegmentWork& work : batch) {
        work.image = work.square.image = at::Tensor();
        for (SegmentWork& part : work.parts) part.square.image = at::Tensor();
        const int64_t bytes = work.bytes();
        if (!work.is_over) made.push(std::move(work), bytes);
      }
    }
    made.close();
  });
}

BatchSegmenter::BatchSegmenter(SegmentModels models,
                               BatchSegmentOptions options,
                               c10::Device device,
                               StageReport& report)
    : impl_(std::make_unique<Impl>(std::move(models), std::move(options), device, report)) {}

BatchSegmenter::~BatchSegmenter() = default;

SegmentCounts BatchSegmenter::run(std::vector<SegmentInput> inputs, SegmentSink& sink) {
  impl_->counts = {};
  if (inputs.empty()) return {};
  const c10::InferenceMode inference_mode;
  group_views(inputs);
  if (impl_->options.mode == "parallel") {
    impl_->run_parallel(inputs, sink);
  } else {
    impl_->run_in_turn(inputs, sink);
  }
  return impl_->counts;
}

}  // namespace cytra::pipelines
