#include "io/weights/torch_file.h"

#include <cstring>
#include <set>

#include <nlohmann/json.hpp>

#include "io/weights/pickle.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

using namespace std::string_literals;

std::string golden_torch(const std::string& name) {
  return std::string(CYTRA_SOURCE_DIR) + "/tests/golden/torch/" + name;
}
std::string torch_error(const std::string& path) {
  return message_of<DataError>([&] { const TorchFile file(path); });
}
void expect_error(const std::string& path, const std::vector<std::string>& parts) {
  const std::string message = torch_error(path);
  EXPECT_EQ(message.rfind(path + ": ", 0), 0U) << message;
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}

TEST(TorchFile, HoldsWhatTorchSaved) {
  const SafetensorsFile expected(golden_torch("expected.safetensors"));
  const auto places = nlohmann::json::parse(expected.metadata().at("places"));
  ASSERT_EQ(places.size(), 10U);
  for (const auto& [name, place] : places.items()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(is_torch_file(golden_torch(name)));
    const TorchFile file(golden_torch(name));
    EXPECT_EQ(file.place(), place);
    std::set<std::string> names;
    for (auto entry = expected.tensors().lower_bound(name + "/");
         entry != expected.tensors().end() && entry->first.rfind(name + "/", 0) == 0;
         ++entry) {
      const std::string key = entry->first.substr(name.size() + 1);
      SCOPED_TRACE(key);
      names.insert(key);
      ASSERT_EQ(file.tensors().count(key), 1U);
      const TensorView &view = file.tensors().at(key), &wanted = entry->second;
      EXPECT_EQ(view.dtype, wanted.dtype);
      EXPECT_EQ(view.shape, wanted.shape);
      ASSERT_EQ(view.bytes, wanted.bytes);
      if (view.bytes == 0) continue;
      EXPECT_EQ(std::memcmp(view.data, wanted.data, view.bytes), 0);
    }
    EXPECT_GE(names.size(), 4U);
    for (const auto& [key, view] : file.tensors()) EXPECT_EQ(names.count(key), 1U) << key;
  }
}

TEST(TorchFile, RunsNothing) {
  for (const char* name : {"malicious.pth", "malicious_legacy.pth"})
    expect_error(golden_torch(name), {"posix.system", "nothing of it was run", "expected weights"});
  EXPECT_FALSE(
      TorchFile(golden_torch("lightning.ckpt")).tensors().empty());  // has one beside the weights
  EXPECT_FALSE(std::filesystem::exists("cytra_was_here"));
}

TEST(TorchFile, SaysWhatIsNoStateDict) {
  expect_error(golden_torch("torchscript.pt"), {"TorchScript", "torch.jit.load"});
  expect_error(golden_torch("module.pth"),
               {"torch.nn.modules.container.Sequential", "state_dict()"});
  expect_error(golden_torch("tensor.pth"), {"torch._utils._rebuild_tensor_v2"});
  expect_error(golden_torch("list.pth"), {"no dict"});
  expect_error(golden_torch("no_tensors.pth"), {"keys: epoch, optimizer"});
  expect_error(golden_torch("expanded.pth"), {"'a'", "contiguous()"});
  expect_error(golden_torch("complex.pth"), {"'a'", "torch.ComplexFloatStorage"});
  expect_error(golden_torch("sparse.pth"), {"'a'", "_rebuild_sparse_tensor"});
  expect_error(golden_torch("metatensor.pth"), {"'a'", "_rebuild_from_type_v2"});
  expect_error(golden_torch("plain.pkl"), {"not a file of torch.save"});
  expect_error(golden_torch("expected.safetensors"), {"not a file of torch.save"});
  EXPECT_FALSE(is_torch_file(golden_torch("expected.safetensors")));
  EXPECT_THROW(TorchFile("none.pth"), ConfigError);
}

TEST(TorchFile, RefusesDamage) {
  const Folder folder;
  const std::string path = folder / "a.pth";
  for (const char* name : {"plain.pth", "legacy.pth"}) {
    const std::string whole = bytes_of(golden_torch(name));
    for (std::size_t size = 0; size < whole.size(); size += 1 + size / 8) {
      put(path, whole.substr(0, size));
      expect_error(path, {"expected"});
    }
  }
  // A storage of the legacy format that claims more values than the file has.
  std::string bytes = bytes_of(golden_torch("legacy.pth"));
  const std::string count = "\x02\0\0\0\0\0\0\0"s;
  bytes.replace(bytes.find(count), 8, "\xff\xff\xff\xff\xff\xff\xff\x7f"s);
  put(path, bytes);
  expect_error(path, {"too early"});
}

TEST(Pickle, ReadsValuesAndCalls) {
  const std::string path = "a";
  const Pickle list = read_pickle(
      path, "\x80\x02](K\x05M\x01\x02J\xff\xff\xff\xff\x8a\x02\x00\x80\x88X\x02\0\0\0hie."s);
  const auto& items = list.nodes[list.root].items;
  ASSERT_EQ(items.size(), 6U);
  const int64_t numbers[] = {5, 513, -1, -32768, 1};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(list.nodes[items[i]].integer, numbers[i]);
  EXPECT_EQ(list.nodes[items[5]].text, "hi");
  const Pickle call = read_pickle(path,
                                  "\x80\x02"
                                  "cos\nsystem\nX\x02\0\0\0ls\x85R."s);
  const Pickle::Node& node = call.nodes[call.root];
  EXPECT_EQ(node.kind, Pickle::Kind::call);
  EXPECT_EQ(call.nodes[node.function].text, "os.system");
}

TEST(Pickle, RefusesWhatIsNone) {
  const auto error = [](const std::string& bytes) {
    return message_of<DataError>([&] { read_pickle("a.pth", bytes); });
  };
  for (const std::string& bytes : {""s,
                                   "\x80"s,
                                   "N."s,
                                   "\x80\x02."s,
                                   "\x80\x06N."s,
                                   "\x80\x02N"s,
                                   "\x80\x02h\0."s,
                                   "\x80\x02(."s,
                                   "\x80\x02u."s,
                                   "\x80\x02K\x01(NNu."s,
                                   "\x80\x02}(Nu."s,
                                   "\x80\x02(Nd."s,
                                   "\x80\x02NN\x93."s,
                                   "\x80\x02NR."s,
                                   "\x80\x02r\xff\xff\xff\xff."s,
                                   "\x80\x02Nr\xff\xff\xff\xff."s,
                                   "\x80\x02X\xff\xff\xff\xff"
                                   "a."s,
                                   "\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                                   "a."s,
                                   "\x80\x02i__main__\nX\n."s,
                                   "\x80\x02P0\n."s})
    EXPECT_NE(error(bytes).find("expected what torch.save writes"), std::string::npos) << bytes;
  EXPECT_NE(error("\x80\x02(" + std::string(3'000'000, 'N') + "t.").find("too many"),
            std::string::npos);
  std::string pairs = "\x80\x02";
  for (int i = 0; i < 2'000'001; ++i) pairs += "N0";
  EXPECT_NE(error(pairs + "N.").find("2 million"), std::string::npos);
  // A long name of the memo, put together again and again.
  std::string names = "\x80\x02X\x40\x42\x0f\0"s + std::string(1'000'000, 'x') + "q\0"s;
  for (int i = 0; i < 1000; ++i) names += "h\0h\0\x93"s;
  EXPECT_NE(error(names + ".").find("16 MB"), std::string::npos);
}

}  // namespace
}  // namespace cytra::io
