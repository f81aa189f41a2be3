// SelectItemsd, DeleteItemsd, RemoveNaNKeysd, CopyItemsd, ConcatItemsd: a sample's entries, loaded
// or still paths. Source: monai.transforms, the same names; of cyto_dl.datamodules.dataframe.utils
// RemoveNaNKeysd.
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "data/manifest.h"
#include "data/sample/per_key.h"
#include "data/sample/same_grid.h"

namespace cytra::data {
namespace {

/// Calls change() with each of the sample's maps.
void for_maps(Sample& sample, const auto& change) {
  change(sample.tensors);
  change(sample.unread);
  change(sample.geometries);
  change(sample.sources);
  change(sample.columns);
}

/// Removes the entries whose key passes the test.
void erase_keys(Sample& sample, const auto& test) {
  for_maps(sample, [&](auto& entries) {
    std::erase_if(entries, [&](const auto& entry) { return test(entry.first); });
  });
}

bool has(const Sample& sample, const std::string& key) {
  return sample.has(key) || sample.sources.count(key) + sample.columns.count(key) > 0;
}

struct SelectItemsd : KeyOptions {
  void operator()(Sample& sample) const {
    for (const std::string& key : keys) {
      if (!has(sample, key) && !allow_missing_keys) sample.at(key);  // throws
    }
    erase_keys(sample, [&](const std::string& key) { return !contains(keys, key); });
  }
};
CYTRA_REGISTER(Transform, PerSample<SelectItemsd>, "SelectItemsd");

struct DeleteItemsd {
  std::vector<std::string> keys;
  std::vector<bool> use_re{false};
  void visit(auto& v) {
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

  void operator()(Sample& sample) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string& name = keys[i];
      if (is_expression(i)) {
        const std::regex expression(name);
        erase_keys(sample,
                   [&](const std::string& key) { return std::regex_search(key, expression); });
      } else {
        erase_keys(sample, [&](const std::string& key) { return key == name; });
      }
    }
  }
};
CYTRA_REGISTER(Transform, PerSample<DeleteItemsd>, "DeleteItemsd");

/// Removes entries without a value. Where it is the first transform, DataframeDatamodule accepts
/// rows with empty cells.
struct RemoveNaNKeysd {
  void visit(auto&) {}
  void operator()(Sample& sample) const {
    std::erase_if(sample.columns, [](const auto& cell) { return is_empty_cell(cell.second); });
  }
};
CYTRA_REGISTER(Transform, PerSample<RemoveNaNKeysd>, "RemoveNaNKeysd");

struct CopyItemsd : KeyOptions {
  int64_t times = 1;
  std::vector<std::string> names;
  void visit(auto& v) {
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
      throw ConfigError("names: {}, expected keys * times: {}", names.size(), expected);
  }

  void operator()(Sample& sample) const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& key = keys[i % keys.size()];
      const std::string& name = names[i];
      if (!has(sample, key)) {
        if (allow_missing_keys) continue;
        sample.at(key);  // throws
      }
      if (has(sample, name))
        throw DataError(sample.id + ": '" + name + "' is there, expected a new name for a copy");
      // Copies share memory: no transform writes into an image.
      for_maps(sample, [&](auto& entries) {
        if (entries.count(key) > 0) entries[name] = entries[key];
      });
    }
  }
};
CYTRA_REGISTER(Transform, PerSample<CopyItemsd>, "CopyItemsd");

struct ConcatItemsd : KeyOptions {
  std::string name;
  int64_t dim = 0;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("name", name, "key of the result", config::required);
    v("dim", dim, "along which they are joined; 0: channels", -4, 3);
  }

  void operator()(Sample& sample) const {
    std::vector<at::Tensor> images;
    const std::string* first = nullptr;
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      if (first != nullptr && dim == 0) expect_same_grid(sample, key, *first);
      if (first == nullptr) first = &key;
    }
    for_each(sample, [&](const at::Tensor& image) {
      if (dim >= image.dim() || dim < -image.dim())
        throw DataError("{} dimensions, expected one numbered {}", image.dim(), dim);
      if (!images.empty()) {
        std::vector<int64_t> shape = image.sizes().vec();
        const int64_t joined = dim < 0 ? dim + image.dim() : dim;
        shape[static_cast<std::size_t>(joined)] = images[0].size(joined);
        if (images[0].sizes() != shape)
          throw DataError("{}, expected {} as the first but along dim {}",
                          fmt::join(image.sizes(), "x"),
                          fmt::join(images[0].sizes(), "x"),
                          joined);
      }
      images.push_back(image);
      return image;
    });
    if (images.empty()) return;
    sample.tensors[name] = at::cat(images, dim);
    if (const auto place = sample.geometries.find(*first); place != sample.geometries.end())
      sample.geometries[name] = io::Geometry(place->second);
  }
};
CYTRA_REGISTER(Transform, PerSample<ConcatItemsd>, "ConcatItemsd");

}  // namespace
}  // namespace cytra::data
