#include "data/survey/survey.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/thread_pool.h"
#include "config/registry.h"
#include "data/sample/image_tensor.h"
#include "data/survey/target_facts.h"
#include "data/transforms/intensity/percentile.h"
#include "data/transforms/load_image.h"
#include "io/annotations/annotations.h"
#include "io/fingerprint.h"
#include "io/image.h"
#include "ops/compute_alone.h"

namespace cytra::data {
namespace {

constexpr int64_t kLargestClass = 1023;
constexpr std::size_t kMostClasses = 64;

std::string dtype_name(at::ScalarType type) {
  for (int i = 0; i <= static_cast<int>(io::Dtype::f64); ++i) {
    const auto dtype = static_cast<io::Dtype>(i);
    if (scalar_type(dtype) == type) return io::name_of(dtype);
  }
  return type == at::kLong ? "int64" : at::toString(type);
}

/// Computes min, max, mean and the histogram of an image's values.
void scan(const auto* values, int64_t count, ImageFacts& facts, std::vector<uint64_t>& counts) {
  float low = static_cast<float>(values[0]), high = low;
  double sum = 0;
  bool is_whole = true;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
    is_whole = is_whole && value == std::floor(value);
    ++counts[Histogram::bin_of(value)];
  }
  facts.min = low;
  facts.max = high;
  facts.mean = sum / static_cast<double>(count);
  facts.is_whole = is_whole;
}

void scan(const at::Tensor& image, ImageFacts& facts, std::vector<uint64_t>& counts) {
  const int64_t count = image.numel();
  switch (image.scalar_type()) {
    case at::kByte:
      return scan(image.const_data_ptr<uint8_t>(), count, facts, counts);
    case at::kUInt16:
      return scan(image.const_data_ptr<uint16_t>(), count, facts, counts);
    case at::kShort:
      return scan(image.const_data_ptr<int16_t>(), count, facts, counts);
    case at::kFloat:
      return scan(image.const_data_ptr<float>(), count, facts, counts);
    default:
      return scan(image.to(at::kFloat).const_data_ptr<float>(), count, facts, counts);
  }
}

std::string identity_of(const Source& source) {
  std::error_code error;
  const auto whole = std::filesystem::canonical(source.path, error);
  const std::string text = error ? source.path : whole.string();
  const io::Selection& selection = source.selection;
  return text + fmt::format("\n{} {} {} {} {}",
                            selection.scene,
                            selection.level,
                            selection.timepoint,
                            selection.axes,
                            fmt::join(selection.channels, ","));
}

/// The LoadImaged that a split has for a key, limited to this key; where there is none, one that
/// accepts any image.
std::shared_ptr<Transform> loader_of(const SplitTransforms& transforms,
                                     Split split,
                                     const std::string& key) {
  const config::Node* lists[] = {&transforms.train, &transforms.valid, &transforms.test};
  std::vector<const config::Node*> order{lists[static_cast<int>(split)]};
  order.insert(order.end(), std::begin(lists), std::end(lists));
  for (const config::Node* list : order) {
    for (config::Node node : list->list) {
      const std::vector<std::string> names = loaded_keys(node);
      if (!contains(names, key)) continue;
      node.set("keys", config::Node::make_string(key));
      return make<Transform>(node);
    }
  }
  return make<Transform>(any_image_load(key));
}

/// Makes a thread of the survey compute with one thread, as the loader's threads do.
void use_one_thread() {
  thread_local const bool once = [] {
    ops::compute_alone();
    return true;
  }();
  static_cast<void>(once);
}

ImageFacts read(const Sample& item,
                const std::string& key,
                const Transform& load,
                std::vector<uint64_t>& counts) {
  ImageFacts facts;
  const auto source = item.sources.find(key);
  facts.path = source == item.sources.end() ? item.id : source->second.path;
  try {
    Sample sample = item;
    if (source != item.sources.end()) {
      Rng unused(0);
      load.apply(sample, unused);
      facts.file = identity_of(source->second);
      if (io::is_annotation_path(source->second.path)) facts.file += "\n" + item.id;
    }
    const at::Tensor image = sample.stored(key).contiguous();
    facts.shape = image.sizes().vec();
    facts.dtype = dtype_name(image.scalar_type());
    facts.geometry = sample.geometry();
    facts.spacing_um = facts.geometry.spacing_um;
    facts.is_grey = facts.shape[0] > 2 && without_equal_channels(image).size(0) == 1;
    scan(image, facts, counts);
    facts.content = fmt::format("{} {}",
                                fmt::join(facts.shape, " "),
                                io::fingerprint(image.const_data_ptr(), image.nbytes()));
  } catch (const std::exception& error) {
    std::ranges::fill(counts, 0);
    facts.error = split(error.what(), '\n').front();
  }
  return facts;
}

void read_split(const std::vector<Sample>& items,
                const SplitTransforms& transforms,
                int64_t threads,
                const std::function<void(Split, int64_t, int64_t)>& progress,
                SplitFacts& facts) {
  std::map<std::string, std::shared_ptr<Transform>> loaders;
  for (const Sample& item : items) {
    facts.ids.push_back(item.id);
    std::vector<std::string>& groups = facts.groups.emplace_back();
    groups.push_back(std::filesystem::path(item.id).parent_path().string());
    for (const auto& [name, word] : item.columns) groups.push_back(name + "=" + word);
    for (const auto& [key, source] : item.sources) loaders[key];
    for (const auto& [key, tensor] : item.tensors) loaders[key];
  }
  for (auto& [key, loader] : loaders) {
    loader = loader_of(transforms, facts.split, key);
    facts.keys[key].images.resize(items.size());
  }
  std::mutex mutex;
  std::condition_variable finished;
  int64_t done = 0;
  const auto all = std::ssize(items);
  const auto work = [&](std::size_t i) {
    thread_local std::vector<uint64_t> counts(Histogram::kBins);
    for (const auto& [key, loader] : loaders) {
      if (items[i].sources.count(key) + items[i].tensors.count(key) == 0) continue;
      ImageFacts image = read(items[i], key, *loader, counts);
      const std::lock_guard lock(mutex);
      KeyFacts& into = facts.keys[key];
      into.images[i] = std::move(image);
      for (std::size_t bin = 0; bin < counts.size(); ++bin) {
        if (counts[bin] == 0) continue;
        into.histogram.counts[bin] += counts[bin];
        ++into.images_with[bin];
        counts[bin] = 0;
      }
    }
    const std::lock_guard lock(mutex);
    progress(facts.split, ++done, all);
    if (done == all) finished.notify_all();
  };
  ThreadPool pool(static_cast<std::size_t>(std::max<int64_t>(1, threads)));
  for (std::size_t i = 0; i < items.size(); ++i) {
    pool.post([&work, i] {
      use_one_thread();
      work(i);
    });
  }
  std::unique_lock lock(mutex);
  finished.wait(lock, [&] { return done == all; });
}

}  // namespace

std::size_t Histogram::bin_of(float value) {
  return ordered_key(value + 0.F) >> 14;  // -0 is 0
}

float Histogram::value_of(std::size_t bin) {
  const auto key = static_cast<uint32_t>(bin << 14);
  return value_of_key((key & 0x80000000U) != 0 ? key : key | 0x3fffU);
}

double Histogram::percentile(double share) const {
  uint64_t all = 0;
  for (const uint64_t count : counts) all += count;
  if (all == 0) return 0;
  const auto rank = static_cast<uint64_t>(share * static_cast<double>(all - 1));
  uint64_t seen = 0;
  std::size_t bin = 0;
  for (; bin < kBins; ++bin) {
    seen += counts[bin];
    if (seen > rank) break;
  }
  return static_cast<double>(value_of(bin));
}

std::vector<ClassFacts> KeyFacts::classes() const {
  for (const ImageFacts& image : images) {
    if (!image.error.empty() || image.shape.empty()) continue;
    if (!image.is_whole || image.max > kLargestClass || image.min < -kLargestClass) return {};
  }
  std::vector<ClassFacts> result;
  for (std::size_t bin = 0; bin < Histogram::kBins; ++bin) {
    if (histogram.counts[bin] == 0) continue;
    if (result.size() == kMostClasses) return {};
    result.push_back(
        {static_cast<int64_t>(Histogram::value_of(bin)), histogram.counts[bin], images_with[bin]});
  }
  return result;
}

std::size_t KeyFacts::broken() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(images, [](const ImageFacts& image) { return !image.error.empty(); }));
}

Survey survey(const DataModule& module,
              int64_t threads,
              const std::function<void(Split split, int64_t done, int64_t all)>& progress,
              Trial trial) {
  Survey result;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    SplitFacts facts;
    facts.split = split;
    try {
      const std::vector<Sample> items = items_of(module, split);
      read_split(items, module.loader().transforms, threads, progress, facts);
    } catch (const DataError& error) {
      facts.error = error.what();
    } catch (const ConfigError& error) {
      if (split == Split::test) continue;  // not every data set has one
      facts.error = error.what();
    }
    result.splits.push_back(std::move(facts));
  }
  if (!trial && module.loader().on_mismatch != "error")
    trial = [](Split, std::size_t) { return std::string(); };
  add_findings(result, trial, module.loader().on_error);
  return result;
}

}  // namespace cytra::data
