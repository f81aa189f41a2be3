#include "app/train/try_batches.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/setup/train_data.h"
#include "base/error.h"
#include "base/strings.h"
#include "data/loader/device_feed.h"
#include "training/precision.h"

namespace cytra::app {
namespace {

using data::Split;

constexpr int64_t kLoaded = 32, kComputed = 2;  // batches of a split

std::string sizes_text(const data::Batch& batch) {
  std::vector<std::string> texts;
  for (const auto& [key, images] : batch.tensors)
    texts.push_back(fmt::format("{} {}", key, fmt::join(images.sizes(), "x")));
  return join(texts, ", ");
}

/// Cuts every image to its middle, no larger than `size`.
void cut(data::Batch& batch, const std::vector<int64_t>& size) {
  for (auto& [key, images] : batch.tensors) {
    for (std::size_t d = 0;
         d < size.size() && images.dim() == static_cast<int64_t>(size.size()) + 2;
         ++d) {
      const auto dim = static_cast<int64_t>(d) + 2;
      const int64_t length = std::min(size[d], images.size(dim));
      images = images.narrow(dim, (images.size(dim) - length) / 2, length);
    }
  }
}

class Trial {
 public:
  Trial(const Setup& setup, data::Survey& survey) : setup_(setup), survey_(survey) {}

  void run(Split split) {
    data::DataLoaderSpec spec = loader_spec(setup_, split);
    spec.options.batch_size = std::max<int64_t>(spec.options.batch_size, 1);  // AUTO: 1
    spec.shuffle = false;
    spec.options.num_samples.reset();  // of shuffled images
    spec.limit = [](int64_t batches) { return std::min(batches, kLoaded); };
    data::DataLoader loader(std::move(spec));
    data::DeviceFeed feed(loader, setup_.device);
    feed.start_epoch(0);
    int64_t computed = 0;
    std::size_t loaded = 0;
    std::string first;
    for (int64_t i = 0; i < loader.size(); ++i) {
      std::optional<data::Batch> batch;
      guard(split, "", [&] { batch = feed.next(); });
      if (!batch) continue;
      loaded += batch->ids.size();
      if (first.empty()) first = sizes_text(*batch);
      if (computed++ < kComputed) guard(split, sizes_text(*batch), [&] { compute(split, *batch); });
    }
    if (const auto& broken = loader.stats().broken; !broken.empty()) {
      const std::size_t tried = loaded + broken.size();
      auto& lines = 2 * broken.size() > tried ? survey_.problems : survey_.notes;
      lines.push_back(fmt::format("{}: {} of {} images, which data.on_error={} handles: {}{}",
                                  data::name_of(split),
                                  broken.size(),
                                  tried,
                                  setup_.data->loader().on_error,
                                  broken.begin()->second,
                                  broken.size() > 1 ? " ..." : ""));
    }
    if (!first.empty()) {
      survey_.notes.push_back(fmt::format("{}: {} batches were loaded, the first of {}",
                                          data::name_of(split),
                                          loader.size(),
                                          first));
    }
  }

  void report() {
    for (const auto& [kind, problem] : problems_) {
      const int64_t more = problem.count - 1;
      survey_.problems.push_back(problem.text +
                                 (more > 0 ? fmt::format(" (and {} more batches)", more) : ""));
    }
  }

 private:
  void compute(Split split, data::Batch& batch) {
    const at::NoGradGuard no_gradients;
    const bool trains = split == Split::train;
    training::Task& task = *setup_.task;
    task.model().train(trains);
    training::cast(batch, setup_.precision.parameters);
    const training::Autocast autocast(setup_.precision, setup_.device.type());
    if (!trains) {
      cut(batch, size_);
      return task.validation_step(batch);
    }
    if (!batch.tensors.empty()) size_ = batch.tensors.begin()->second.sizes().slice(2).vec();
    const auto loss = task.training_step(batch).item<double>();
    if (!std::isfinite(loss)) {
      throw DataError("{}: the loss of this batch is {}, expected a finite number",
                      join(batch.ids, ", "),
                      loss);
    }
  }

  void guard(Split split, const std::string& batch, const auto& work) {
    try {
      work();
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      add(split, fmt::format("a batch of {}: {}", batch, what.substr(0, what.find('\n'))));
    } catch (const std::exception& error) {
      add(split, error.what());
    }
  }

  /// Adds a problem. An image that the survey complains about is not reported twice, and a problem
  /// that several images have is reported once.
  void add(Split split, const std::string& what) {
    const std::size_t end = what.find(": ");
    const std::string image = what.substr(0, end);
    for (const std::string& problem : survey_.problems) {
      if (problem.find(image) != std::string::npos) return;
    }
    const std::string kind = end == std::string::npos ? what : what.substr(end);
    Problem& problem = problems_[data::name_of(split) + kind];
    if (problem.count++ == 0) problem.text = fmt::format("{}: {}", data::name_of(split), what);
  }

  struct Problem {
    std::string text;
    int64_t count = 0;
  };
  const Setup& setup_;
  data::Survey& survey_;
  std::vector<int64_t> size_;                // of a training batch's images
  std::map<std::string, Problem> problems_;  // by split and kind
};

}  // namespace

data::Trial trial_of(const Setup& setup) {
  auto specs = std::make_shared<std::map<Split, data::DataLoaderSpec>>();
  return [&setup, specs](Split split, std::size_t index) -> std::string {
    try {
      auto spec = specs->find(split);
      if (spec == specs->end()) spec = specs->emplace(split, loader_spec(setup, split)).first;
      data::Sample sample = spec->second.items.at(index);
      Rng rng(setup.seed);
      for (const auto& transform : spec->second.transforms) data::apply(*transform, sample, rng);
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  };
}

void try_batches(const Setup& setup, data::Survey& survey) {
  Trial trial(setup, survey);
  for (const data::SplitFacts& split : survey.splits) {
    if (split.split != Split::test && split.error.empty()) trial.run(split.split);
  }
  trial.report();
}

}  // namespace cytra::app
