#include "app/train/check_targets.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/files.h"
#include "data/loader/pipeline.h"
#include "data/survey/check_targets.h"
#include "data/survey/target_facts.h"
#include "training/task.h"

namespace cytra::app {
namespace {

using data::Split;
using data::TargetMeaning;
using Kind = TargetMeaning::Kind;

constexpr int64_t kMostVoxels = int64_t{1} << 26;  // in a split

bool is_same_file(const data::Sample& sample, const std::string& a, const std::string& b) {
  const auto one = sample.sources.find(a), two = sample.sources.find(b);
  if (one == sample.sources.end() || two == sample.sources.end()) return false;
  const io::Selection &first = one->second.selection, &second = two->second.selection;
  return first.channels == second.channels && first.scene == second.scene &&
         first.timepoint == second.timepoint && are_same_file(one->second.path, two->second.path);
}

struct Looked {
  std::vector<std::vector<data::TargetFacts>> facts;  // by meaning
  bool are_all = false;
};

Looked look(const Setup& setup,
            Split split,
            const std::vector<TargetMeaning>& meanings,
            int64_t most) {
  Looked looked;
  looked.facts.resize(meanings.size());
  const data::Pipeline pipeline(
      data::items_of(*setup.data, split),
      data::make_transforms(setup.data->loader().transforms, Split::valid),
      nullptr,
      false);
  const auto count = std::ssize(pipeline.items());
  const int64_t chosen = std::min(count, most);
  int64_t voxels = 0, done = 0;
  for (int64_t k = 0; k < chosen && voxels < kMostVoxels; ++k) {
    try {
      data::CurrentTransform current{nullptr};
      data::Sample sample = pipeline.load(static_cast<std::size_t>(k * count / chosen), current);
      Rng rng(0);
      pipeline.transform(sample, rng, current);
      for (std::size_t m = 0; m < meanings.size(); ++m) {
        const TargetMeaning& meaning = meanings[m];
        const at::Tensor& image = sample.stored(meaning.image_key);
        at::Tensor target = sample.stored(meaning.key);
        if (meaning.kind == Kind::mask || meaning.kind == Kind::classes)
          target = data::without_equal_channels(target);
        voxels += target.numel();
        looked.facts[m].push_back(
            data::look_at_target(target, image, meaning.kind != Kind::values));
        looked.facts[m].back().file = sample.file_of(meaning.key);
        if (is_same_file(sample, meaning.key, meaning.image_key))
          looked.facts[m].back().is_image = true;
      }
      ++done;
    } catch (const std::exception&) {  // the loaders report it, with what to do
    }
  }
  looked.are_all = done == count;
  return looked;
}

}  // namespace

std::vector<std::string> check_targets(const Setup& setup, int64_t images, bool may_end) {
  std::vector<std::string> problems;
  const std::vector<TargetMeaning> meanings = setup.task->target_meanings();
  if (meanings.empty()) return problems;
  for (const Split split : {Split::train, Split::valid}) {
    Looked looked;
    try {
      looked = look(setup, split, meanings, images);
    } catch (const std::exception&) {  // no such split; the survey and the loaders report it
      continue;
    }
    for (std::size_t m = 0; m < meanings.size(); ++m) {
      for (const data::TargetProblem& problem : data::check_targets(
               meanings[m], data::name_of(split), looked.facts[m], looked.are_all)) {
        if (may_end && problem.ends_training) throw ConfigError(problem.text);
        problems.push_back(problem.text);
      }
    }
  }
  return problems;
}

}  // namespace cytra::app
