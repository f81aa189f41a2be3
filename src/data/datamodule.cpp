#include "data/datamodule.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "data/loader/loader.h"
#include "io/annotations/annotations.h"
#include "io/image_folder.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;

const char* name_of(Split split) {
  const char* names[] = {"train", "valid", "test", "predict"};
  return names[static_cast<int>(split)];
}

std::optional<Split> split_named(const std::string& word) {
  if (word == "train" || word == "training") return Split::train;
  if (word == "val" || word == "valid" || word == "validation") return Split::valid;
  if (word == "test" || word == "testing") return Split::test;
  return {};
}

namespace {

/// Whether LoadImaged says which time points are taken.
bool chooses_time(const SplitTransforms& transforms) {
  const auto chooses = [](const config::Node& load) {
    const config::Node* timepoint = load.find("timepoint");
    const config::Node* reader = load.find("reader.T");
    return (timepoint != nullptr && !timepoint->is_null()) ||
           (reader != nullptr && !reader->is_null()) || load.get<bool>("time_as_channels", false);
  };
  return std::ranges::any_of(transforms.train.list, [&](const config::Node& transform) {
    return transform.is_map() && chooses(transform);
  });
}

/// The time points of an image of which none is chosen; 1 for others.
int64_t timepoints_of(const Source& source) {
  if (source.path.empty() || source.selection.timepoint >= 0 || source.time_is_channel ||
      io::is_annotation_path(source.path))
    return 1;
  io::Selection selection = source.selection;
  selection.timepoint = 0;
  try {
    return io::open_image(source.path, selection)->info().timepoints;
  } catch (const Error&) {  // reported when it is read
    return 1;
  }
}

/// The time points of all images of a sample; 1 where one has others, as 4D NIfTI of channels with
/// one target.
int64_t timepoints_of(const Sample& sample) {
  std::set<int64_t> counts;
  for (const auto& [key, source] : sample.sources) counts.insert(timepoints_of(source));
  return counts.size() == 1 ? *counts.begin() : 1;
}

std::vector<Sample> each_time_point(std::vector<Sample> samples) {
  if (samples.empty() || timepoints_of(samples[0]) == 1) return samples;
  std::vector<Sample> all;
  for (const Sample& sample : samples) {
    const int64_t count = timepoints_of(sample);
    for (int64_t time = 0; time < count; ++time) {
      Sample& one = all.emplace_back(sample);
      for (auto& [key, source] : one.sources)
        if (count > 1) source.selection.timepoint = time;
    }
  }
  return all;
}

}  // namespace

std::vector<Sample> items_of(const DataModule& module, Split split) {
  std::vector<Sample> samples = module.items(split);
  for (Sample& sample : samples) {
    sample.on_mismatch = mismatch_of(module.loader().on_mismatch);
    sample.fill_nan = module.loader().fill_nan;
    for (auto& [key, source] : sample.sources)
      source.selection.axes = module.loader().axes.value_or("");
  }
  if (chooses_time(module.loader().transforms)) return samples;
  return each_time_point(std::move(samples));
}

Transforms make_transforms(const SplitTransforms& transforms, Split split) {
  const config::Node& test = transforms.test.is_null() ? transforms.valid : transforms.test;
  const config::Node* lists[] = {&transforms.train, &transforms.valid, &test, &transforms.predict};
  Transforms result;
  for (const config::Node& node : lists[static_cast<int>(split)]->list) {
    result.push_back(make<Transform>(node));
    result.back()->name = Registry<Transform>::instance().components().name_of(node);
    result.back()->text.insert(0, config::to_json(node));
  }
  return result;
}

void throw_no_transforms(const SplitTransforms& transforms, Split split) {
  const config::Node& list = split == Split::train     ? transforms.train
                             : split == Split::predict ? transforms.predict
                                                       : transforms.valid;
  throw ConfigError(
      "{}: no transforms, so nothing loads the images of '{}': expected a list of transforms{}",
      list.path.empty() ? fmt::format("data.transforms.{}", name_of(split)) : list.where(),
      name_of(split),
      split == Split::valid
          ? " that begins with LoadImaged (or no validation: trainer.limit_val_batches=0)"
          : " that begins with LoadImaged");
}

DataLoaderSpec loader_spec(const DataModule& module, Split split) {
  DataLoaderSpec spec;
  spec.items = items_of(module, split);
  spec.options = module.loader();
  spec.transforms = make_transforms(spec.options.transforms, split);
  const bool has_files = !spec.items.empty() && spec.items.front().tensors.empty();
  if (has_files && spec.transforms.empty()) throw_no_transforms(spec.options.transforms, split);
  if (split == Split::train) {
    for (const config::Node& node : spec.options.transforms.batch.list)
      spec.batch_transforms.push_back(make<BatchTransform>(node));
    spec.shuffle = true;
  } else {
    spec.options.batch_size = 1;
    spec.options.drop_last = false;
  }
  return spec;
}

std::string table_of(const std::string& folder, Split split) {
  std::vector<std::string> names = {name_of(split)}, found;
  if (split == Split::valid) names.insert(names.end(), {"val", "validation"});
  for (const std::string& name : names) {
    for (const char* extension : {".csv", ".tsv"}) {
      const std::string file = (fs::path(folder) / (name + extension)).string();
      if (is_there(file)) found.push_back(file);
    }
  }
  if (found.size() > 1) {
    throw ConfigError(
        "data.path: {} and {}: two tables for {}, expected one; delete or rename the other, or "
        "name a single table of all splits",
        found[0],
        found[1],
        name_of(split));
  }
  return found.empty() ? "" : found[0];
}

bool is_there(const std::string& path) {
  std::error_code error;  // also a path of 5,000 letters, or a loop of links
  const fs::file_status status = fs::status(io::file_of(path), error);
  return fs::is_regular_file(status) || fs::is_directory(status) ||
         (io::is_mask_folder(path) && !io::mask_files(path).empty());
}

std::vector<Sample> list_folder(const std::string& folder, const std::string& key) {
  if (!folder_exists(folder)) throw ConfigError(folder + ": no such folder");
  std::vector<Sample> samples;
  for (const std::string& path : io::list_images(folder)) {
    Sample& sample = samples.emplace_back();
    sample.id = path;
    sample.sources[key].path = path;
  }
  if (samples.empty())
    throw DataError(folder + ": no images (.tif, .png, .nii, .zarr, ...) in this folder");
  return samples;
}

}  // namespace cytra::data
