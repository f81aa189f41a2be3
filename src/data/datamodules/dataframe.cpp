// DataframeDatamodule: manifests with one row per image. Source:
// cyto_dl.datamodules.dataframe.DataframeDatamodule.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/strings.h"
#include "config/registry.h"
#include "data/datamodule.h"
#include "data/datamodules/held_out.h"
#include "data/layout/folder_hint.h"
#include "data/manifest.h"
#include "data/source_keys.h"
#include "io/image_folder.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

/// The images of a split to use: a whole number is a count (-1: all), a number with a point a
/// share.
struct SubsampleOptions {
  config::Node train, valid, test;
  void visit(auto& v) {
    v("train", train, "images to train with: a number, or a share such as 0.1; null: all");
    v("valid", valid, "of valid");
    v("test", test, "of test");
  }
  void check() const {
    for (const config::Node* node : {&train, &valid, &test}) count(*node, 1);
  }
  const config::Node* of(Split split) const {
    const config::Node* nodes[] = {&train, &valid, &test, nullptr};
    return nodes[static_cast<int>(split)];
  }
  /// The number of images to use of `available`.
  static std::size_t count(const config::Node& node, std::size_t available) {
    using config::Kind;
    const bool is_count = node.kind == Kind::integer && (node.integer >= 1 || node.integer == -1);
    const bool is_share = node.kind == Kind::real && node.real > 0 && node.real <= 1;
    if (node.is_null() || (is_count && node.integer < 0)) return available;
    if (is_count) return std::min(available, static_cast<std::size_t>(node.integer));
    if (!is_share) {
      throw ConfigError(
          "expected a number of images from 1, or a share above 0 and up to 1.0 (-1 or null: all)");
    }
    const auto share = static_cast<std::size_t>(static_cast<double>(available) * node.real + 0.5);
    return std::max<std::size_t>(1, share);
  }
};

class DataframeDatamodule final : public DataModule, public Parted {
 public:
  struct Options : LoaderOptions, FoldOptions, SourceKeyOptions {
    std::string path;
    std::vector<std::string> columns, read_columns;
    std::optional<std::string> split_column, weight_column, stratify;
    config::Node split_map;
    SubsampleOptions subsample;
    bool refresh_subsample = false, just_inference = false, allow_shared = false;
    int64_t seed = 42;
    void visit(auto& v) {
      v("path",
        path,
        "folder with train.csv, valid.csv, test.csv, predict.csv, or one .csv or .tsv file");
      v("columns", columns, "columns to read; empty: all");
      SourceKeyOptions::visit(v);
      v("split_column",
        split_column,
        "for one file: the column that says for each row: train, valid or test");
      v("split_map", split_map, "other words in split_column: {word: train, ...}");
      v("weight_column", weight_column, "column with the weight of each row, for a sampler");
      v("subsample", subsample, "part of each split, drawn once by `seed`");
      v("refresh_subsample", refresh_subsample, "an option of CytoDL; must be false");
      v("just_inference", just_inference, "test with every row, whatever its split");
      v("allow_shared",
        allow_shared,
        "an image may be for training and for validation; false: an error, since its scores say "
        "nothing of others");
      v("seed", seed, "of subsample", 0, 1e15);
      FoldOptions::visit(v);
      v("stratify",
        stratify,
        "with folds: a column of `columns`, such as a class, whose words all folds have in equal "
        "shares; null: none");
      LoaderOptions::visit(v);
    }
    void check() {
      LoaderOptions::check();
      FoldOptions::check();
      read_columns = read(columns);
      if (stratify && !folds) {
        throw ConfigError("data.stratify: it is for folds: expected data.folds=5 with it, or null");
      }
      if (refresh_subsample) {
        throw ConfigError(
            "refresh_subsample: true is not supported; trainer.limit_train_batches takes other "
            "images in each epoch");
      }
      if (!split_map.is_null() && !split_map.is_map())
        throw ConfigError("split_map: expected a map, such as {fit: train, check: valid}");
      for (const auto& [word, split] : split_map.map) {
        if (!split_named(split.as<std::string>())) {
          throw ConfigError("split_map.{}: '{}', expected train, valid or test.{}",
                            word,
                            split.as<std::string>(),
                            suggestion(split.as<std::string>(), {"train", "valid", "test"}));
        }
      }
    }
  };
  explicit DataframeDatamodule(const Options& options) : options_(options) {}

  std::vector<Sample> items(Split split) const override {
    if (options_.path.empty())
      throw ConfigError("data.path is not set: name the folder with train.csv and valid.csv");
    if (!is_there(options_.path))
      throw ConfigError("data.path: {}: no such folder or manifest", options_.path);
    if (io::is_image_path(options_.path)) {
      throw ConfigError(
          "data.path: {}: an image, expected its folder, or a table with the columns {} whose rows "
          "name images and what belongs to them",
          options_.path,
          join(options_.columns, " and "));
    }
    if (options_.just_inference && (split == Split::train || split == Split::valid)) {
      throw ConfigError(
          "data.just_inference is true: nothing is left for {}; set it to false to train",
          name_of(split));
    }
    std::vector<Sample> samples =
        fs::is_directory(options_.path) ? of_folder(split) : of_file(split);
    if (is_of_fold(split)) samples = of_stratified_fold(split, std::move(samples));
    subsample(split, samples);
    join_sources(options_.source_keys, options_.joined, options_.columns, samples);
    return samples;
  }
  const LoaderOptions& loader() const override { return options_; }
  void expect_parts(const std::vector<Sample>& train,
                    const std::vector<Sample>& valid) const override {
    if (options_.allow_shared || options_.folds) return;
    expect_parted(train, valid, ", or type data.allow_shared=true");
  }

 private:
  bool is_of_fold(Split split) const {
    return options_.folds && (split == Split::train || split == Split::valid);
  }
  /// The images of a fold: with `stratify`, the folds of each of its words by themselves.
  std::vector<Sample> of_stratified_fold(Split split, std::vector<Sample> all) const {
    if (!options_.stratify) return of_fold(options_, split, std::move(all));
    std::map<std::string, std::vector<Sample>> by_word;
    std::map<std::string, std::string> word_of;  // by file
    for (Sample& sample : all) {
      const auto cell = sample.columns.find(*options_.stratify);
      if (cell == sample.columns.end()) {
        throw ConfigError("data.stratify: no column '{}' of words among data.columns",
                          *options_.stratify);
      }
      const std::string& word = cell->second;
      const std::string& before = word_of.emplace(file_of_image(sample), word).first->second;
      if (before != word) {
        throw DataError(
            "{}: rows of this file have '{}' and '{}' in '{}', but what is of one file stays in "
            "one fold; expected one word for each file, or data.stratify=null",
            sample.id,
            before,
            word,
            *options_.stratify);
      }
      by_word[word].push_back(std::move(sample));
    }
    std::vector<Sample> chosen;
    for (auto& [word, samples] : by_word) {
      try {
        append(chosen, of_fold(options_, split, std::move(samples)));
      } catch (const DataError& error) {
        throw DataError("{}={}: {}", *options_.stratify, word, error.what());
      }
    }
    return chosen;
  }
  Manifest open(const std::string& path, Split split) const {
    const Transforms transforms = make_transforms(options_.transforms, split);
    const bool allow_empty = std::ranges::any_of(
        transforms, [](const auto& transform) { return transform->name == "RemoveNaNKeysd"; });
    return {path,
            options_.read_columns,
            options_.weight_column.value_or(""),
            /*leave_out=*/options_.on_error != "fail",
            options_.axes.value_or(""),
            allow_empty};
  }

  /// Adds the samples of the split's table; false where there is none.
  bool add(Split split, std::vector<Sample>& samples) const {
    const std::string file = table_of(options_.path, split);
    if (file.empty()) return false;
    append(samples, open(file, split).samples());
    return true;
  }
  /// Advice what to type where a split has no table.
  std::string advice(Split split) const {
    if (split != Split::train && split != Split::predict &&
        !table_of(options_.path, Split::train).empty()) {
      return fmt::format("; data.folds=5 takes a fifth of {} for it",
                         fs::path(table_of(options_.path, Split::train)).filename().string());
    }
    std::vector<std::string> tables;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(options_.path, error)) {
      const std::string path = entry.path().string();
      if (path.ends_with(".csv") || path.ends_with(".tsv")) tables.push_back(path);
    }
    std::ranges::sort(tables);
    const std::string hint = folder_hint(options_.path, options_.columns.size());
    return tables.empty()
               ? hint
               : "; a table of all images is named itself: " + path_word(tables[0]) + hint;
  }
  bool add(std::initializer_list<Split> splits, std::vector<Sample>& samples) const {
    bool is_found = false;
    for (const Split one : splits) is_found |= add(one, samples);
    return is_found;
  }

  /// The samples of a split from a folder of tables. With folds, train and valid are read
  /// together. To predict, all tables are read where there is no predict.csv.
  std::vector<Sample> of_folder(Split split) const {
    if (options_.just_inference) split = Split::predict;
    std::vector<Sample> samples;
    const bool is_found =
        is_of_fold(split)
            ? add({Split::train, Split::valid}, samples)
            : add(split, samples) || (split == Split::predict &&
                                      add({Split::train, Split::valid, Split::test}, samples));
    if (!is_found) {
      const std::string hint = advice(split);
      if (hint.empty() && !io::may_hold_images(options_.path)) {
        throw ConfigError("data.path: {}: no images in this folder, nor below it; {}",
                          options_.path,
                          io::kinds_read());
      }
      throw ConfigError(
          "data.path: {}: no {}.csv in this folder{}", options_.path, name_of(split), hint);
    }
    return samples;
  }

  /// The samples of a split from one file: the rows chosen by split_column; all rows to predict;
  /// with folds, all except those of test.
  std::vector<Sample> of_file(Split split) const {
    // The folds of train and valid are parts of one list: no row may be left out of one alone.
    const Manifest manifest = open(options_.path, is_of_fold(split) ? Split::train : split);
    const bool is_whole = is_of_fold(split) && !options_.split_column;
    if (split == Split::predict || options_.just_inference || is_whole) return manifest.samples();
    if (!options_.split_column) {
      throw ConfigError(
          "data.path: {} is one file for all splits: set data.split_column to its column that says "
          "train, valid or test, or data.path to a folder with train.csv and valid.csv, or type "
          "data.folds=5: a fifth of the rows is for validation",
          options_.path);
    }
    const std::size_t column = manifest.column(*options_.split_column);
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < manifest.rows(); ++row) {
      const Split said = split_of_row(manifest, row, column);
      if (is_of_fold(split) ? said != Split::test : said == split) rows.push_back(row);
    }
    if (rows.empty()) {
      throw ConfigError("{}: no row whose column '{}' says {}",
                        options_.path,
                        *options_.split_column,
                        name_of(split));
    }
    return manifest.samples(rows);
  }

  Split split_of_row(const Manifest& manifest, std::size_t row, std::size_t column) const {
    std::string word = manifest.cell(row, column);
    if (const config::Node* other = options_.split_map.find_direct(word))
      word = other->as<std::string>();
    if (const std::optional<Split> split = split_named(word)) return *split;
    std::vector<std::string> choices{"train", "valid", "test"};
    for (const auto& [key, value] : options_.split_map.map) choices.push_back(key);
    throw DataError(
        "{} is '{}', expected train, valid or test; data.split_map tells what other words mean.{}",
        manifest.place(row, column),
        word,
        suggestion(word, choices));
  }

  /// Keeps a part of the samples in their order, drawn without replacement: the first of a
  /// shuffled list.
  void subsample(Split split, std::vector<Sample>& samples) const {
    const config::Node* wanted = options_.subsample.of(split);
    if (wanted == nullptr) return;
    const std::size_t count = SubsampleOptions::count(*wanted, samples.size());
    if (count == samples.size()) return;
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Rng rng(static_cast<uint64_t>(options_.seed), 0, static_cast<uint64_t>(split));
    for (std::size_t i = 0; i < count; ++i)
      std::swap(order[i], order[i + rng.below(order.size() - i)]);
    order.resize(count);
    std::ranges::sort(order);
    samples = mapped(order, [&](std::size_t index) { return std::move(samples[index]); });
  }
  Options options_;
};
CYTRA_REGISTER(DataModule, DataframeDatamodule, "DataframeDatamodule");

}  // namespace
}  // namespace cytra::data
