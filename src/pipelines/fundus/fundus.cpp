#include "pipelines/fundus/fundus.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "base/error.h"
#include "base/files.h"
#include "base/queue.h"
#include "data/sample/image_tensor.h"
#include "io/reader.h"
#include "pipelines/job/stage_threads.h"

namespace cytra::pipelines {
namespace {

using data::fundus::Disc;

/// An image that was read, or why it was not.
struct FundusRead {
  at::Tensor image;  // (C,H,W)
  std::exception_ptr error;
};

struct FundusWrite {
  FundusInput input;
  Disc disc;
  std::vector<std::pair<std::string, io::Image>> files;
};

/// Threads that read ahead; the images are taken in their order, so that batches are the same
/// however the threads run.
class FundusReader {
 public:
  FundusReader(const std::vector<FundusInput>& inputs,
               int64_t threads,
               std::size_t ahead,
               StageReport::Stage& stage)
      : inputs_(inputs), ahead_(ahead), stage_(stage) {
    for (int64_t i = 0; i < threads; ++i) threads_.start([this] { work(); });
  }
  /// Throws: what a reader threw that is no error of an image.
  FundusRead take(std::size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || read_.count(index) > 0; });
    if (error_) std::rethrow_exception(error_);
    FundusRead read = std::move(read_[index]);
    read_.erase(index);
    taken_ = index + 1;
    changed_.notify_all();
    return read;
  }

 private:
  void work() {
    for (;;) {
      std::size_t index = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return error_ || next_ < taken_ + ahead_; });
        if (error_ || next_ >= inputs_.size()) return;
        index = next_++;
      }
      FundusRead read;
      try {
        const StageWork working(stage_);
        read.image = image_of(inputs_[index].path);
      } catch (...) {
        read.error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      read_[index] = std::move(read);
      changed_.notify_all();
    }
  }
  static at::Tensor image_of(const std::string& path) {
    at::Tensor image = data::to_tensor(io::read_image(path), 2, path);
    data::check_finite(image, path);
    if (image.size(0) != 1 && image.size(0) != 3) {
      throw DataError(
          "{}: {} channels, expected one or three (red, green, blue)", path, image.size(0));
    }
    return image;
  }

  const std::vector<FundusInput>& inputs_;
  const std::size_t ahead_;
  StageReport::Stage& stage_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, FundusRead> read_;  // guarded by mutex_, as all that follows
  std::size_t next_ = 0, taken_ = 0;
  std::exception_ptr error_;
  StageThreads threads_{[this](const std::exception_ptr& error) {  // goes first: it uses the others
    const std::lock_guard lock(mutex_);
    error_ = error;
    changed_.notify_all();
  }};
};

io::Image fundus_image(const at::Tensor& values, double scale, io::Dtype dtype) {
  return data::to_image((values * scale).round_(), dtype, {});
}

}  // namespace

std::vector<std::string> fundus_files(const FundusInput& input, const FundusOptions& options) {
  std::vector<std::string> files{"images/" + input.name + ".png"};
  if (options.contrast) files.push_back("contrast/" + input.name + ".png");
  if (options.mask) files.push_back("masks/" + input.name + ".png");
  return files;
}

void preprocess_fundus(const std::vector<FundusInput>& inputs,
                       const FundusOptions& options,
                       const std::string& folder,
                       c10::Device device,
                       StageReport& report,
                       const FundusEvents& events) {
  namespace fundus = data::fundus;
  const c10::InferenceMode inference_mode;
  for (const char* part : {"images", "contrast", "masks"}) {
    const bool is_wanted = part[0] == 'i' || (part[0] == 'c' ? options.contrast : options.mask);
    if (is_wanted) make_folders(folder + "/" + part);
  }
  StageReport::Stage& reading = report.add("reading", options.workers);
  StageReport::Stage& finding = report.add("finding");
  StageReport::Stage& changing = report.add("changing");
  StageReport::Stage& writing = report.add("writing", options.workers);
  std::mutex telling;
  // A CPU gains nothing by larger batches, which would keep more photographs in memory.
  const int64_t most = options.batch_size > 0 ? options.batch_size : device.is_cpu() ? 1 : 8;
  const auto ahead = static_cast<std::size_t>(most - 1 + options.workers);
  Queue<FundusWrite> found_discs(ahead);
  const auto write_all = [&] {
    while (std::optional<FundusWrite> write = found_discs.pop()) {
      {
        const StageWork working(writing);
        for (const auto& [name, image] : write->files) io::write_png(folder + "/" + name, image);
      }
      const std::lock_guard lock(telling);
      events.done(write->input, write->disc);
    }
  };
  // What was found is written even if another stage fails, unless writing failed.
  StageThreads threads([&](const std::exception_ptr& /*error*/) { found_discs.close(); });
  for (int64_t i = 0; i < options.workers; ++i) {
    threads.start([&] {
      try {
        write_all();
      } catch (...) {
        found_discs.fail(std::current_exception());
        throw;
      }
    });
  }
  const auto fail = [&](const FundusInput& input, const std::exception& error, const Disc* disc) {
    const std::lock_guard lock(telling);
    events.failed(input, error, disc);
  };

  std::vector<std::size_t> members;
  std::vector<at::Tensor> batch;
  const auto flush = [&] {
    if (batch.empty()) return;
    const at::Tensor images =
        (batch.size() == 1 ? batch[0].unsqueeze(0) : at::stack(batch)).to(device);
    batch.clear();
    std::vector<Disc> discs;
    {
      const StageWork working(finding, images.size(0));
      discs = fundus::find_discs(images, options);
    }
    std::vector<int64_t> found;
    std::vector<Disc> kept;
    for (std::size_t i = 0; i < discs.size(); ++i) {
      const FundusInput& input = inputs[members[i]];
      if (discs[i].is_found()) {
        found.push_back(static_cast<int64_t>(i));
        kept.push_back(discs[i]);
      } else {
        fail(input, DataError(input.path + ": " + discs[i].problem()), &discs[i]);
      }
    }
    if (!kept.empty()) {
      const StageWork working(changing, std::ssize(kept));
      const at::Tensor chosen =
          kept.size() == discs.size()
              ? images
              : images.index_select(0, at::tensor(found, at::kLong).to(device));
      const at::Tensor views = fundus::to_view(chosen, kept, options.view, false);
      const at::Tensor masks = fundus::mask_of(kept, options.view, device);
      const double white = fundus::white_of(chosen);
      const at::Tensor shown = (options.mask ? views * masks : views).to(at::kCPU);
      at::Tensor contrast;
      if (options.contrast)
        contrast = fundus::enhance(views / white, masks, options.view).to(at::kCPU);
      const at::Tensor on_host = masks.to(at::kCPU);
      const bool is_wide = white == 65535;
      for (std::size_t i = 0; i < kept.size(); ++i) {
        const auto n = static_cast<int64_t>(i);
        FundusWrite write{inputs[members[static_cast<std::size_t>(found[i])]], kept[i], {}};
        const std::vector<std::string> names = fundus_files(write.input, options);
        std::size_t next = 0;
        write.files.emplace_back(names[next++],
                                 fundus_image(shown[n],
                                              (is_wide ? 65535 : 255) / white,
                                              is_wide ? io::Dtype::u16 : io::Dtype::u8));
        if (options.contrast)
          write.files.emplace_back(names[next++], fundus_image(contrast[n], 255, io::Dtype::u8));
        if (options.mask)
          write.files.emplace_back(names[next++], fundus_image(on_host[n], 255, io::Dtype::u8));
        found_discs.push(std::move(write));
      }
    }
    members.clear();
  };

  threads.finish([&] {
    FundusReader reader(inputs, options.workers, ahead, reading);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const FundusRead read = reader.take(i);
      try {
        if (read.error) std::rethrow_exception(read.error);
        // What the whole batch would fail by.
        if (read.image.is_floating_point()) fundus::white_of(read.image);
        if (std::min(read.image.size(1), read.image.size(2)) < 32)
          throw DataError(inputs[i].path + ": expected 32 pixels a side or more");
      } catch (const ConfigError& error) {
        fail(inputs[i], error, nullptr);
        continue;
      } catch (const DataError& error) {
        fail(inputs[i], error, nullptr);
        continue;
      }
      if (!batch.empty() && (batch[0].sizes() != read.image.sizes() ||
                             batch[0].scalar_type() != read.image.scalar_type()))
        flush();
      batch.push_back(read.image);
      members.push_back(i);
      if (std::ssize(batch) == most) flush();
    }
    flush();
    found_discs.close();
  });
}

}  // namespace cytra::pipelines
