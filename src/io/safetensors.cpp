#include "io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/input_file.h"

namespace cytra::io {

std::size_t element_size(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "U8" || dtype == "I8" || dtype == "BOOL") return 1;
  return 0;
}

namespace {

using Json = nlohmann::json;
constexpr std::size_t kMaxHeader = 100'000'000;

[[noreturn]] void refuse_safetensors(const std::string& path, const std::string& what) {
  throw DataError(path + ": " + printable(what, 300) +
                  ", expected a complete safetensors file; copy or save it again");
}

/// Refuses duplicate names (nlohmann would keep the last) and nesting beyond what the format has.
/// It runs before the parser, whose callbacks take time by the square of a map's size.
class HeaderCheck final : public Json::json_sax_t {
 public:
  explicit HeaderCheck(const std::string& path) : path_(path) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool key(std::string& name) override {
    if (!names_.back().insert(name).second)
      refuse_safetensors(path_, "'" + name + "' occurs twice");
    return true;
  }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    refuse_safetensors(path_, std::string("the header is not JSON (") + error.what() + ")");
  }

 private:
  bool open() {
    if (names_.size() == 4) refuse_safetensors(path_, "the header is nested too deep");
    names_.emplace_back();
    return true;
  }
  bool close() {
    names_.pop_back();
    return true;
  }
  const std::string& path_;
  std::vector<std::unordered_set<std::string>> names_;  // of each map that is open
};

Json parse_header(const std::string& path, const std::string& text) {
  HeaderCheck check(path);
  Json::sax_parse(text, &check);
  return Json::parse(text);
}

/// The key of a whole file's checksum, computed with zeros in its place.
constexpr const char* kChecksum = "xxh3";
const std::string kNoChecksum(16, '0');

std::string checksum_entry(const std::string& value) {
  return fmt::format("\"{}\":\"{}\"", kChecksum, value);
}

class Checksum {
 public:
  Checksum() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_.get(), data, bytes); }
  std::string text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace

struct SafetensorsFile::Impl {
  explicit Impl(const std::string& path) : path(path) {
    const InputFile file(path);
    if (file.bytes() < 8) refuse_safetensors(path, "a file of less than 8 bytes");
    map = std::make_unique<MappedFile>(path, file.descriptor(), file.bytes());
  }
  void parse();
  void add(const std::string& name, const Json& entry, const char* data, std::size_t data_size);
  const char* bytes() const { return reinterpret_cast<const char*>(map->data()); }

  std::string path;
  std::unique_ptr<MappedFile> map;
  TensorViews tensors;
  std::map<std::string, std::string> metadata;
};

void SafetensorsFile::Impl::add(const std::string& name,
                                const Json& entry,
                                const char* data,
                                std::size_t data_size) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets") || !entry["dtype"].is_string() ||
      !entry["shape"].is_array() || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2) {
    refuse_safetensors(path, "the entry of '" + name + "' needs dtype, shape and data_offsets");
  }
  TensorView view;
  view.dtype = entry["dtype"].get<std::string>();
  std::size_t bytes = element_size(view.dtype);
  if (bytes == 0)
    refuse_safetensors(path,
                       "'" + name + "' has the type " + view.dtype + ", which is not supported");
  for (const Json& side : entry["shape"]) {
    if (!side.is_number_unsigned())
      refuse_safetensors(path, "the shape of '" + name + "' is not made of whole numbers");
    const auto length = side.get<uint64_t>();
    if (length > INT64_MAX || __builtin_mul_overflow(bytes, length, &bytes))
      refuse_safetensors(path, "the shape of '" + name + "' is too large");
    view.shape.push_back(static_cast<int64_t>(length));
  }
  for (const Json& offset : entry["data_offsets"]) {
    if (!offset.is_number_unsigned())
      refuse_safetensors(path, "the offsets of '" + name + "' are not whole numbers");
  }
  const auto begin = entry["data_offsets"][0].get<uint64_t>(),
             end = entry["data_offsets"][1].get<uint64_t>();
  if (begin > end || end > data_size)
    refuse_safetensors(path, "'" + name + "' lies beyond the end of the file (truncated?)");
  if (end - begin != bytes)
    refuse_safetensors(path, "the offsets of '" + name + "' do not fit its shape");
  view.data = data + begin;
  view.bytes = bytes;
  tensors[name] = std::move(view);
}

void SafetensorsFile::Impl::parse() {
  const MappedFile::Reading reading(*map);
  const std::size_t size = map->size();
  uint64_t header = 0;
  std::memcpy(&header, bytes(), 8);
  if (header > kMaxHeader || header > size - 8)
    refuse_safetensors(path, "the header's length does not fit the file (truncated?)");
  if (header == 0 || bytes()[8] != '{')
    refuse_safetensors(path, "the header does not begin with {");
  const char* data = bytes() + 8 + header;
  const std::size_t data_size = size - 8 - header;
  const Json root = parse_header(path, std::string(bytes() + 8, header));
  reading.check();
  for (const auto& [name, entry] : root.items()) {
    if (name != "__metadata__") {
      add(name, entry, data, data_size);
      continue;
    }
    if (!entry.is_object()) refuse_safetensors(path, "__metadata__ is not a map of texts");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse_safetensors(path, "__metadata__ is not a map of texts");
      metadata[key] = value.get<std::string>();
    }
  }
  // Together the tensors fill the file: no holes, no overlaps, nothing after them.
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const auto& [name, view] : tensors) {
    const auto begin = static_cast<std::size_t>(static_cast<const char*>(view.data) - data);
    ranges.emplace_back(begin, begin + view.bytes);
  }
  std::ranges::sort(ranges);
  std::size_t position = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != position) refuse_safetensors(path, "its tensors leave holes or overlap");
    position = end;
  }
  if (position != data_size) refuse_safetensors(path, "bytes follow the last tensor");
}

SafetensorsFile::SafetensorsFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  impl_->parse();
}
SafetensorsFile::~SafetensorsFile() = default;
const TensorViews& SafetensorsFile::tensors() const {
  return impl_->tensors;
}
MappedFile::Reading SafetensorsFile::reading() const {
  return MappedFile::Reading(*impl_->map);
}
const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return impl_->metadata;
}

void SafetensorsFile::verify() const {
  const auto entry = impl_->metadata.find(kChecksum);
  if (entry == impl_->metadata.end()) return;
  const MappedFile::Reading reading(*impl_->map);
  const char* bytes = impl_->bytes();
  uint64_t length = 0;
  std::memcpy(&length, bytes, 8);
  std::string header(bytes + 8, length);
  const std::size_t place = header.find(checksum_entry(entry->second));
  if (place != std::string::npos)
    header.replace(place, checksum_entry(kNoChecksum).size(), checksum_entry(kNoChecksum));
  Checksum checksum;
  checksum.add(header.data(), header.size());
  checksum.add(bytes + 8 + length, impl_->map->size() - 8 - length);
  reading.check();
  if (place == std::string::npos || checksum.text() != entry->second)
    refuse_safetensors(impl_->path, "its checksum differs: it was damaged or changed");
}

std::size_t write_safetensors(const std::string& path,
                              const TensorViews& tensors,
                              const std::map<std::string, std::string>& metadata,
                              bool durable) {
  nlohmann::ordered_json root;
  root["__metadata__"] = metadata;
  root["__metadata__"][kChecksum] = kNoChecksum;
  // Wide types come first, as in the reference writer: then every tensor is aligned to its own
  // size.
  std::vector<std::pair<std::string, const TensorView*>> order;
  order.reserve(tensors.size());
  for (const auto& [name, view] : tensors) order.emplace_back(name, &view);
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
    return element_size(a.second->dtype) > element_size(b.second->dtype);
  });
  std::size_t offset = 0;
  for (const auto& [name, view] : order) {
    root[name] = {{"dtype", view->dtype},
                  {"shape", view->shape},
                  {"data_offsets", {offset, offset + view->bytes}}};
    offset += view->bytes;
  }
  std::string header = root.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  Checksum checksum;
  checksum.add(header.data(), header.size());
  for (const auto& [name, view] : order) checksum.add(view->data, view->bytes);
  const std::string entry = checksum_entry(checksum.text());
  header.replace(header.find(checksum_entry(kNoChecksum)), entry.size(), entry);
  const auto length = static_cast<uint64_t>(header.size());
  AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  for (const auto& [name, view] : order) file.write(view->data, view->bytes);
  file.commit(durable);
  return sizeof length + header.size() + offset;
}

}  // namespace cytra::io
