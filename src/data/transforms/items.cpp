// SelectItemsd, DeleteItemsd, RemoveNaNKeysd, CopyItemsd, ConcatItemsd: a sample's entries, loaded
// or still paths. Source: monai.transforms, the same names; of cyto_dl.datamodules.dataframe.utils
// RemoveNaNKeysd.
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/manifest.h"
#include "data/same_grid.h"
#include "data/transforms/per_key.h"

namespace cytra::data {
namespace {

/// Removes the entries whose key passes the test.
template <class Test>
void erase_keys(Sample& sample, const Test& test) {
  const auto erase = [&](auto& entries) {
    for (auto entry = entries.begin(); entry != entries.end();)
      entry = test(entry->first) ? entries.erase(entry) : std::next(entry);
  };
  erase(sample.tensors);
  erase(sample.unread);
  erase(sample.geometries);
  erase(sample.sources);
  erase(sample.columns);
}

bool has(const Sample& sample, const std::string& key) {
  return sample.has(key) || sample.sources.count(key) + sample.columns.count(key) > 0;
}

class SelectItemsd final : public Transform {
 public:
  using Options = KeyOptions;
  explicit SelectItemsd(const Options& options) : options_(options) {}
  void apply(Sample& sample, Rng&) const override {
    for (const std::string& key : options_.keys) {
      if (!has(sample, key) && !options_.allow_missing_keys) sample.at(key);  // throws
    }
    erase_keys(sample, [&](const std::string& key) {
      return std::find(options_.keys.begin(), options_.keys.end(), key) == options_.keys.end();
    });
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, SelectItemsd, "SelectItemsd");

class DeleteItemsd final : public Transform {
 public:
  struct Options {
    std::vector<std::string> keys;
    std::vector<bool> use_re{false};
    template <class V>
    void visit(V& v) {
      v("keys", keys, "keys to remove, or regular expressions", config::required);
      v("use_re", use_re, "keys are expressions to search in the names; one, or one for each");
      v("sep", config::Unused{}, "samples have no entries inside entries");
    }
    void check() const {
      if (use_re.size() != 1 && use_re.size() != keys.size())
        throw ConfigError("use_re: expected one value, or one for each key");
      for (std::size_t i = 0; i < keys.size(); ++i) {
        try {
          if (is_expression(i)) std::regex{keys[i]};
        } catch (const std::regex_error&) {
          throw ConfigError("keys: '" + keys[i] + "', expected a regular expression");
        }
      }
    }
    bool is_expression(std::size_t i) const { return use_re[use_re.size() == 1 ? 0 : i]; }
  };
  explicit DeleteItemsd(const Options& options) : options_(options) {}
  void apply(Sample& sample, Rng&) const override {
    for (std::size_t i = 0; i < options_.keys.size(); ++i) {
      const std::string& name = options_.keys[i];
      if (options_.is_expression(i)) {
        const std::regex expression(name);
        erase_keys(sample,
                   [&](const std::string& key) { return std::regex_search(key, expression); });
      } else {
        erase_keys(sample, [&](const std::string& key) { return key == name; });
      }
    }
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, DeleteItemsd, "DeleteItemsd");

/// Removes entries without a value. Where it is the first transform, DataframeDatamodule accepts
/// rows with empty cells.
class RemoveNaNKeysd final : public Transform {
 public:
  struct Options {
    template <class V>
    void visit(V&) {}
  };
  explicit RemoveNaNKeysd(const Options&) {}
  void apply(Sample& sample, Rng&) const override {
    for (auto cell = sample.columns.begin(); cell != sample.columns.end();)
      cell = is_empty_cell(cell->second) ? sample.columns.erase(cell) : std::next(cell);
  }
};
CYTRA_REGISTER(Transform, RemoveNaNKeysd, "RemoveNaNKeysd");

class CopyItemsd final : public Transform {
 public:
  struct Options : KeyOptions {
    int64_t times = 1;
    std::vector<std::string> names;
    template <class V>
    void visit(V& v) {
      KeyOptions::visit(v);
      v("times", times, "copies of each", 1, 1e6);
      v("names", names, "of the copies: the first of each key, then the second; null: KEY_0, ...");
    }
    void check() {
      if (names.empty()) {
        for (int64_t i = 0; i < times; ++i) {
          for (const std::string& key : keys) names.push_back(key + "_" + std::to_string(i));
        }
      }
      const std::size_t expected = keys.size() * static_cast<std::size_t>(times);
      if (names.size() != expected)
        throw ConfigError(
            fmt::format("names: {}, expected keys * times: {}", names.size(), expected));
    }
  };
  explicit CopyItemsd(const Options& options) : options_(options) {}
  void apply(Sample& sample, Rng&) const override {
    for (std::size_t i = 0; i < options_.names.size(); ++i) {
      const std::string& key = options_.keys[i % options_.keys.size()];
      const std::string& name = options_.names[i];
      if (!has(sample, key)) {
        if (options_.allow_missing_keys) continue;
        sample.at(key);  // throws
      }
      if (has(sample, name))
        throw DataError(sample.id + ": '" + name + "' is there, expected a new name for a copy");
      // Copies share memory: no transform writes into an image.
      if (sample.tensors.count(key) > 0) sample.tensors[name] = sample.tensors[key];
      if (sample.unread.count(key) > 0) sample.unread[name] = sample.unread[key];
      if (sample.geometries.count(key) > 0) sample.geometries[name] = sample.geometries[key];
      if (sample.sources.count(key) > 0) sample.sources[name] = sample.sources[key];
      if (sample.columns.count(key) > 0) sample.columns[name] = sample.columns[key];
    }
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, CopyItemsd, "CopyItemsd");

class ConcatItemsd final : public Transform {
 public:
  struct Options : KeyOptions {
    std::string name;
    int64_t dim = 0;
    template <class V>
    void visit(V& v) {
      KeyOptions::visit(v);
      v("name", name, "key of the result", config::required);
      v("dim", dim, "along which they are joined; 0: channels", -4, 3);
    }
  };
  explicit ConcatItemsd(const Options& options) : options_(options) {}
  void apply(Sample& sample, Rng&) const override {
    std::vector<at::Tensor> images;
    const std::string* first = nullptr;
    for (const std::string& key : options_.keys) {
      if (options_.skips(sample, key)) continue;
      if (first != nullptr && options_.dim == 0) expect_same_grid(sample, key, *first);
      if (first == nullptr) first = &key;
    }
    options_.for_each(sample, [&](const at::Tensor& image) {
      if (options_.dim >= image.dim() || options_.dim < -image.dim())
        throw DataError(
            fmt::format("{} dimensions, expected one numbered {}", image.dim(), options_.dim));
      if (!images.empty()) {
        std::vector<int64_t> shape = image.sizes().vec();
        const int64_t dim = options_.dim < 0 ? options_.dim + image.dim() : options_.dim;
        shape[static_cast<std::size_t>(dim)] = images[0].size(dim);
        if (images[0].sizes() != shape)
          throw DataError(fmt::format("{}, expected {} as the first but along dim {}",
                                      fmt::join(image.sizes(), "x"),
                                      fmt::join(images[0].sizes(), "x"),
                                      dim));
      }
      images.push_back(image);
      return image;
    });
    if (images.empty()) return;
    sample.tensors[options_.name] = at::cat(images, options_.dim);
    if (const auto place = sample.geometries.find(*first); place != sample.geometries.end())
      sample.geometries[options_.name] = io::Geometry(place->second);
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, ConcatItemsd, "ConcatItemsd");

}  // namespace
}  // namespace cytra::data
