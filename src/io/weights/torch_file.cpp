#include "io/weights/torch_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/weights/pickle.h"
#include "io/weights/stored_tensor.h"
#include "io/weights/zip_directory.h"

namespace cytra::io {
namespace {

using PickleKind = Pickle::Kind;
using Node = Pickle::Node;

constexpr std::size_t kMaxName = 1000;
constexpr std::string_view kZip = "PK\3\4";
// 0x1950a86a20f9469cfc6c as a pickle of protocol 2.
constexpr std::string_view kLegacy("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

struct TypeName {
  const char *storage, *type, *ours;
};
constexpr TypeName kTorchTypes[] = {{"torch.FloatStorage", "torch.float32", "F32"},
                                    {"torch.HalfStorage", "torch.float16", "F16"},
                                    {"torch.BFloat16Storage", "torch.bfloat16", "BF16"},
                                    {"torch.DoubleStorage", "torch.float64", "F64"},
                                    {"torch.LongStorage", "torch.int64", "I64"},
                                    {"torch.IntStorage", "torch.int32", "I32"},
                                    {"torch.ShortStorage", "torch.int16", "I16"},
                                    {"torch.CharStorage", "torch.int8", "I8"},
                                    {"torch.ByteStorage", "torch.uint8", "U8"},
                                    {"torch.BoolStorage", "torch.bool", "BOOL"},
                                    {"", "torch.uint16", "U16"},
                                    {"", "torch.uint32", "U32"},
                                    {"torch.storage.UntypedStorage", "", "U8"}};

// Where checkpoints keep their weights: Lightning, MONAI's CheckpointSaver, nnU-Net, timm, others;
// averaged weights last.
constexpr const char* kPlaces[] = {"state_dict",
                                   "model_state_dict",
                                   "network_weights",
                                   "model",
                                   "net",
                                   "network",
                                   "module",
                                   "weights",
                                   "state_dict_ema",
                                   "model_ema",
                                   "ema"};

[[noreturn]] void refuse_torch_file(const std::string& path, const std::string& what) {
  throw DataError(
      "{}: {}, expected weights as torch.save(model.state_dict(), 'weights.pth') writes them",
      path,
      printable(what, 600));
}

/// The content of a file: the tree of its objects, and the bytes of each storage.
struct SavedObjects {
  Pickle pickle;
  std::map<std::string, std::string_view> storages;
};

SavedObjects read_zip(const std::string& path, std::string_view bytes) {
  const std::map<std::string, std::string_view> files = zip_directory(path, bytes);
  std::string folder;  // all lie in one, named as the file was when it was saved
  for (const auto& [name, content] : files) {
    if (name.find('/') == name.rfind('/') && name.ends_with("/data.pkl"))
      folder = name.substr(0, name.size() - 8);
  }
  if (folder.empty()) refuse_torch_file(path, "a ZIP archive without data.pkl");
  if (files.count(folder + "constants.pkl") != 0) {
    refuse_torch_file(
        path,
        "a TorchScript module (convert it: python -c \"import torch; torch.save(torch.jit.load("
        "'IN.pt', 'cpu').state_dict(), 'weights.pth')\")");
  }
  const auto order = files.find(folder + "byteorder");
  if (order != files.end() && order->second != "little")
    refuse_torch_file(path, "saved by a machine with another byte order");
  const std::string_view pickle = files.at(folder + "data.pkl");
  if (pickle.data() == nullptr) refuse_torch_file(path, "its data.pkl is compressed");
  SavedObjects saved;
  saved.pickle = read_pickle(path, pickle);
  const std::string prefix = folder + "data/";
  for (auto at = files.lower_bound(prefix); at != files.end() && at->first.starts_with(prefix);
       ++at)
    saved.storages[at->first.substr(prefix.size())] = at->second;
  return saved;
}

class StateReader {
 public:
  StateReader(std::string path, SavedObjects saved, uint64_t most_copied)
      : path_(std::move(path)),
        saved_(std::move(saved)),
        stored_(most_copied,
                [this](const auto& name, const auto& what) { refuse_tensor(name, what); }) {}

  void read() {
    const uint32_t root = saved_.pickle.root;
    const std::optional<uint32_t> state = state_in(root, "", 0);
    if (!state) refuse_torch_file(path_, describe(root));
    const std::vector<uint32_t>& items = at(*state).items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (at(items[i]).kind == PickleKind::text) add(at(items[i]).text, items[i + 1]);
    }
  }
  std::string place;
  TensorViews tensors;
  std::list<std::vector<unsigned char>> take_copies() { return stored_.take_copies(); }

 private:
  const Node& at(uint32_t index) const { return saved_.pickle.nodes[index]; }
  std::string_view function_of(const Node& node) const {
    if (node.kind != PickleKind::call || at(node.function).kind != PickleKind::global) return {};
    return at(node.function).text;
  }
  bool is_dict(const Node& node) const {
    return node.kind == PickleKind::dict || function_of(node) == "collections.OrderedDict";
  }
  /// The node that makes a value: for a parameter, the call inside.
  const Node& maker_of(const Node& node) const {
    const std::string_view function = function_of(node);
    if (function != "torch._utils._rebuild_parameter" &&
        function != "torch._utils._rebuild_parameter_with_state")
      return node;
    const Node& arguments = at(node.arguments);
    return arguments.kind == PickleKind::tuple && !arguments.items.empty() ? at(arguments.items[0])
                                                                           : node;
  }
  bool is_tensor(const Node& node) const {
    const std::string_view function = function_of(maker_of(node));
    return function.starts_with("torch._utils._rebuild_") ||
           function.starts_with("torch._tensor._rebuild_");
  }

  /// The value in a call that LibTorch's pickle_save puts around dicts and lists to keep the types
  /// of their elements.
  uint32_t untagged(uint32_t index) const {
    while (function_of(at(index)) == "torch.jit._pickle.restore_type_tag") {
      const Node& arguments = at(at(index).arguments);
      if (arguments.kind != PickleKind::tuple || arguments.items.empty()) break;
      index = arguments.items[0];  // made before the call
    }
    return index;
  }

  /// The state dict at or below `index`, and its place.
  std::optional<uint32_t> state_in(uint32_t index, const std::string& prefix, int depth) {
    index = untagged(index);
    if (depth > 3 || !is_dict(at(index)) || !seen_.insert(index).second) return std::nullopt;
    const std::vector<uint32_t>& items = at(index).items;
    std::map<std::string_view, uint32_t> dicts;
    bool has_tensor = false;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (at(items[i]).kind != PickleKind::text || at(items[i]).text.size() > kMaxName) continue;
      has_tensor = has_tensor || is_tensor(at(items[i + 1]));
      if (is_dict(at(untagged(items[i + 1])))) dicts[at(items[i]).text] = items[i + 1];
    }
    for (const char* name : kPlaces) {
      const auto found = dicts.find(name);
      if (found == dicts.end()) continue;
      const auto state = state_in(found->second, prefix + name + ".", depth + 1);
      if (state) return state;
    }
    if (!has_tensor) return std::nullopt;
    place = prefix.substr(0, prefix.size() - std::min<std::size_t>(prefix.size(), 1));
    return index;
  }

  std::string describe(uint32_t index) const {
    const Node& node = at(index);
    if (node.kind == PickleKind::call && !is_dict(node)) {
      return fmt::format(
          "it holds an object of {}, which only Python can make (a whole module? save its "
          "state_dict()); nothing of it was run",
          printable(function_of(node)));
    }
    if (!is_dict(node)) return "it holds no dict";
    std::vector<std::string> keys;
    for (std::size_t i = 0; i + 1 < node.items.size() && keys.size() < 10; i += 2) {
      if (at(node.items[i]).kind == PickleKind::text)
        keys.push_back(printable(at(node.items[i]).text, 40));
    }
    return fmt::format("it holds no dict of tensors (keys: {})", join(keys, ", "));
  }

  [[noreturn]] void refuse_tensor(const std::string& name, const std::string& what) const {
    refuse_torch_file(path_, fmt::format("'{}' {}", printable(name), what));
  }
  void add(const std::string& name, uint32_t index) {
    const Node& maker = maker_of(at(index));
    if (!is_tensor(maker)) return;
    if (name.size() > kMaxName) refuse_tensor(name, "... has a name of more than 1000 bytes");
    const std::string_view function = function_of(maker);
    const bool has_type = function == "torch._utils._rebuild_tensor_v3";
    if (!has_type && function != "torch._utils._rebuild_tensor_v2" &&
        function != "torch._utils._rebuild_tensor")
      refuse_tensor(name,
                    fmt::format("is made by {}, which is not supported", printable(function)));
    tensors[name] = read_tensor(name, maker, has_type);
  }

  const std::vector<uint32_t>& tuple(const std::string& name,
                                     uint32_t index,
                                     std::size_t least) const {
    const Node& node = at(index);
    if (node.kind != PickleKind::tuple || node.items.size() < least)
      refuse_tensor(name, "is not described as a tensor is");
    return node.items;
  }
  std::vector<int64_t> numbers(const std::string& name, uint32_t index) const {
    std::vector<int64_t> values;
    const std::vector<uint32_t>& items = tuple(name, index, 0);
    for (const uint32_t item : items) {
      if (at(item).kind != PickleKind::integer || at(item).integer < 0)
        refuse_tensor(name, "has a shape or strides that are not whole numbers");
      values.push_back(at(item).integer);
    }
    return values;
  }

  TensorView read_tensor(const std::string& name, const Node& call, bool has_type) {
    const auto& arguments = tuple(name, call.arguments, has_type ? 7 : 4);
    if (at(arguments[0]).kind != PickleKind::persistent) refuse_tensor(name, "has no storage");
    const auto& storage = tuple(name, at(arguments[0]).arguments, 5);
    const std::string& key = at(storage[2]).text;
    const std::string& type = at(has_type ? arguments[6] : storage[1]).text;
    StoredLayout layout;
    for (const TypeName& entry : kTorchTypes) {
      if (type == (has_type ? entry.type : entry.storage)) layout.dtype = entry.ours;
    }
    if (layout.dtype.empty())
      refuse_tensor(name, fmt::format("has the type {}, which is not supported", printable(type)));
    layout.shape = numbers(name, arguments[2]);
    layout.strides = numbers(name, arguments[3]);
    layout.offset = at(arguments[1]).integer;
    const auto found = saved_.storages.find(key);
    return stored_.read(
        name, layout, found == saved_.storages.end() ? std::string_view() : found->second);
  }

  std::string path_;
  SavedObjects saved_;
  StoredTensors stored_;
  std::set<uint32_t> seen_;  // dicts may hold themselves
};

/// Reads the format before torch 1.6: pickles of a magic number, a version, the machine, the
/// objects and the storages' keys; then per key how many values, and these.
SavedObjects read_legacy(const std::string& path, std::string_view bytes) {
  std::size_t at = 0;
  const auto next = [&] {
    Pickle pickle = read_pickle(path, bytes.substr(at));
    at += pickle.bytes;
    return pickle;
  };
  next();
  next();
  const Pickle machine = next();
  const std::vector<uint32_t>& facts = machine.nodes[machine.root].items;
  for (std::size_t i = 0; i + 1 < facts.size(); i += 2) {
    if (machine.nodes[facts[i]].text == "little_endian" && machine.nodes[facts[i + 1]].integer != 1)
      refuse_torch_file(path, "saved by a machine with another byte order");
  }
  SavedObjects saved;
  saved.pickle = next();
  const std::deque<Node>& nodes = saved.pickle.nodes;
  std::map<std::string, std::size_t> element;  // of each storage
  for (const Node& node : nodes) {
    if (node.kind != PickleKind::persistent) continue;
    const std::vector<uint32_t>& id = nodes[node.arguments].items;
    if (id.size() < 6 || nodes[id[5]].kind != PickleKind::other)
      refuse_torch_file(path, "a view of a storage");
    for (const TypeName& type : kTorchTypes) {
      if (nodes[id[1]].text == type.storage) element[nodes[id[2]].text] = element_size(type.ours);
    }
  }
  const Pickle keys = next();
  for (const uint32_t index : keys.nodes[keys.root].items) {
    const std::string& key = keys.nodes[index].text;
    uint64_t size = 0;
    if (bytes.size() - at < sizeof size) refuse_torch_file(path, "it ends too early");
    std::memcpy(&size, bytes.data() + at, sizeof size);
    at += sizeof size;
    const std::size_t wide = element.count(key) == 0 ? 0 : element[key];
    if (wide == 0) refuse_torch_file(path, "a storage of a type that is not supported");
    if (size > (bytes.size() - at) / wide) refuse_torch_file(path, "it ends too early");
    saved.storages[key] = bytes.substr(at, size * wide);
    at += size * wide;
  }
  return saved;
}

}  // namespace

bool is_torch_file(const std::string& path) {
  const InputFile file(path);
  char first[16] = {};
  file.read_at(0, first, sizeof first);
  if (first[8] == '{') return false;  // the length of a safetensors header may look like anything
  return std::string_view(first, sizeof first).starts_with(kZip) ||
         (first[0] == '\x80' && first[1] >= 2 && first[1] <= 5);
}

struct TorchFile::Impl {
  explicit Impl(const std::string& path) : file(std::make_unique<InputFile>(path)) {
    file->map();
    const MappedFile::Reading reading(file->mapped());
    const std::string_view bytes(reinterpret_cast<const char*>(file->mapped().data()),
                                 file->bytes());
    if (bytes.starts_with(kZip)) {
      take(path, read_zip(path, bytes), bytes.size());
    } else if (bytes.starts_with(kLegacy)) {
      take(path, read_legacy(path, bytes), bytes.size());
    } else {
      refuse_torch_file(path, "not a file of torch.save");
    }
    reading.check();
  }
  Impl(const std::string& path, std::string_view bytes) {
    SavedObjects saved = read_zip(path, bytes);
    const Node& root = saved.pickle.nodes[saved.pickle.root];
    if (root.kind == PickleKind::dict && root.items.empty()) return;
    take(path, std::move(saved), bytes.size());
  }
  void take(const std::string& path, SavedObjects saved, std::size_t bytes) {
    StateReader reader(path, std::move(saved), 4 * bytes);
    reader.read();
    tensors = std::move(reader.tensors);
    copies = reader.take_copies();
    place = std::move(reader.place);
  }
  std::unique_ptr<InputFile> file;  // null: it is in another one
  TensorViews tensors;
  std::list<std::vector<unsigned char>> copies;  // of tensors that are not row-major in the file
  std::string place;
};

TorchFile::TorchFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
TorchFile::TorchFile(const std::string& path, std::string_view bytes)
    : impl_(std::make_unique<Impl>(path, bytes)) {}
TorchFile::~TorchFile() = default;
const TensorViews& TorchFile::tensors() const {
  return impl_->tensors;
}
MappedFile::Reading TorchFile::reading() const {
  return MappedFile::Reading(impl_->file->mapped());
}
const std::string& TorchFile::place() const {
  return impl_->place;
}

}  // namespace cytra::io
