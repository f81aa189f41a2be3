#include "inference/imported/bioimageio/package.h"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/weights/archive.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;
using config::Node;

const char* name_of_axis(char letter) {
  return letter == 'b'   ? "batch"
         : letter == 'c' ? "channel"
         : letter == 'z' ? "z"
         : letter == 'y' ? "y"
                         : "x";
}

char letter_of(const Node& node, const std::string& type, const std::string& id) {
  if (type == "batch" || type == "channel") return type[0];
  if (type == "space") {
    if (id.size() == 1 && std::string("zyx").find(id) != std::string::npos) return id[0];
    refuse_package(node, "the axis '" + printable(id) + "' of space, expected x, y or z");
  }
  if (type == "time" || type == "index") return 'o';
  refuse_package(node,
                 "type '" + printable(type) + "', expected batch, channel, space, time or index");
}

void remove_key(Node& map, const char* key) {
  auto& all = map.map;
  std::erase_if(all, [&](const auto& entry) { return entry.first == key; });
}

/// Names the tensor whose values count as BioimageioOperations does: `input`, the unprocessed one;
/// no key: the tensor itself.
void name_reference(const PackageTensor& tensor, const PackageTensor* input, Node& kwargs) {
  Node* const reference = kwargs.find_direct("reference_tensor");
  if (reference == nullptr) return;
  const auto id = reference->is_null() ? tensor.id : reference->as<std::string>();
  const bool is_own = id == tensor.id;
  const std::string& of_input = input == nullptr ? tensor.id : input->id;
  if (!is_own && id != of_input)
    refuse_package(*reference, "'" + printable(id) + "', expected the input: '" + of_input + "'");
  if (reference->is_null() || (is_own && input != nullptr))
    remove_key(kwargs, "reference_tensor");
  else
    *reference = Node::make_string("input");
}

void rename_axes(PackageTensor& tensor, Node& kwargs) {
  const auto rename = [&](Node& node) {
    const auto id = node.as<std::string>();
    for (const PackageAxis& axis : tensor.axes) {
      if (axis.id != id) continue;
      if (axis.letter != 'o') node = Node::make_string(name_of_axis(axis.letter));
      return;
    }
    refuse_package(node, "there is no axis '" + printable(id) + "'");
  };
  if (Node* axis = kwargs.find_direct("axis"); axis != nullptr && !axis->is_null()) rename(*axis);
  if (Node* axes = kwargs.find_direct("axes"); axes != nullptr && !axes->is_null()) {
    for (Node& axis : axes->list) rename(axis);
  }
}

}  // namespace

void refuse_package(const Node& node, const std::string& what) {
  throw ConfigError(node.where() + ": " + what);
}

Package::Package(const std::string& path) {
  file_ = folder_exists(path) ? io::bioimageio_description(path) : path;
  if (file_.empty())
    throw DataError(path + ": no rdf.yaml or bioimageio.yaml, expected a package of bioimage.io");
  folder_ = fs::path(file_).parent_path();
  root_ = config::load_yaml(file_);
  if (!root_.is_map() || root_.find_direct("format_version") == nullptr)
    throw DataError(file_ + ": no format_version; expected a description of bioimage.io");
  const std::string type = root_.get<std::string>("type", "model");
  if (type != "model")
    refuse_package(root_.at("type"), "'" + printable(type) + "', expected model");
  const std::string version = root_.get<std::string>("format_version");
  is_old_ = version.starts_with("0.4.") || version == "0.4";
  if (!is_old_ && !version.starts_with("0.5.") && version != "0.5") {
    refuse_package(root_.at("format_version"), "'" + printable(version) + "', expected 0.4 or 0.5");
  }
  expect_different_names();
  expect_checksums(root_);
}

std::string Package::path_of(const Node& source) const {
  const auto given = source.as<std::string>();
  const fs::path path = given;
  if (given.find("://") != std::string::npos) return "";
  if (path.is_absolute() || contains(path, ".."))
    refuse_package(source, "'" + printable(given) + "', expected a file in the package's folder");
  const fs::path whole = folder_ / path;
  return path_exists(whole) ? whole.string() : "";
}

PackageTensor Package::input() const {
  const Node& inputs = root_.at("inputs");
  if (inputs.list.size() != 1)
    refuse_package(inputs, fmt::format("{} inputs, expected one: the image", inputs.list.size()));
  return tensor(inputs.list[0], nullptr);
}

PackageTensor Package::output(const PackageTensor& input) const {
  const Node& outputs = root_.at("outputs");
  if (outputs.list.empty()) refuse_package(outputs, "expected a list of tensors");
  PackageTensor output = tensor(outputs.list[0], &input);
  for (PackageAxis& axis : output.axes) {  // an axis of one voxel more
    if (axis.size == 1 && axis.letter != 'b' && axis.letter != 'c' && !input.find(axis.letter))
      axis.letter = 'o';
  }
  return output;
}

PackageTensor Package::tensor(const Node& node, const PackageTensor* input) const {
  const bool is_input = input == nullptr;
  PackageTensor tensor;
  tensor.node = &node;
  tensor.id = node.get<std::string>(is_old_ ? "name" : "id", is_input ? "input" : "output");
  if (is_old_)
    read_old_axes(tensor, is_input);
  else
    read_axes(tensor, input);
  constexpr int64_t kMostSide = int64_t{1} << 31;
  for (const PackageAxis& axis : tensor.axes) {
    for (const int64_t number : {axis.size, axis.min, axis.step, axis.halo}) {
      if (number < 0 || number > kMostSide)
        refuse_package(*axis.node,
                       fmt::format("a size of {}, expected 1 to {}", number, kMostSide));
    }
  }
  const Node* steps = node.find_direct(is_input ? "preprocessing" : "postprocessing");
  if (steps != nullptr && steps->is_map()) refuse_package(*steps, "expected a list");
  if (steps != nullptr) {
    for (const Node& step : steps->list) add_operation(tensor, step, input);
  }
  const Node* test = nullptr;
  if (is_old_) {
    const Node* tests = root_.find_direct(is_input ? "test_inputs" : "test_outputs");
    if (tests != nullptr && !tests->list.empty()) test = &tests->list[0];
  } else if (const Node* one = node.find_direct("test_tensor"); one != nullptr && one->is_map()) {
    test = one->find_direct("source");
  }
  if (test != nullptr) tensor.test = path_of(*test);
  return tensor;
}

void Package::expect_different_names() const {
  std::set<std::string> seen;
  for (const char* key : {"inputs", "outputs"}) {
    for (const Node& tensor : root_.at(key).list) {
      const Node* name = tensor.find(is_old_ ? "name" : "id");
      if (name != nullptr && !seen.insert(name->as<std::string>()).second)
        refuse_package(*name, "another tensor has the same name");
    }
  }
}

void Package::read_axes(PackageTensor& tensor, const PackageTensor* input) {
  const Node& axes = tensor.node->at("axes");
  for (const Node& node : axes.list) {
    PackageAxis axis;
    axis.node = &node;
    const auto type = node.get<std::string>("type");
    axis.id = node.get<std::string>("id", type == "space" ? "x" : type);
    axis.letter = letter_of(node, type, axis.id);
    axis.scale = node.get<double>("scale", 1);
    if (!(axis.scale > 0)) refuse_package(node, "expected a positive scale");
    axis.halo = node.get<int64_t>("halo", 0);
    if (const Node* names = node.find_direct("channel_names")) axis.size = std::ssize(names->list);
    const Node* size = node.find_direct("size");
    if (size == nullptr || size->is_null()) {
      if (axis.letter != 'b' && axis.letter != 'c') refuse_package(node, "expected its size");
    } else if (!size->is_map()) {
      axis.size = size->as<int64_t>();
    } else if (size->find_direct("axis_id") == nullptr) {
      axis.min = size->get<int64_t>("min", 1);
      axis.step = size->get<int64_t>("step", 1);
    } else {
      axis.offset = size->get<double>("offset", 0);
      refer(input == nullptr ? tensor : *input, axis, *size);
    }
    tensor.axes.push_back(axis);
  }
}

/// Takes the size of the axis that `reference` names, one of `tensor`.
void Package::refer(const PackageTensor& tensor, PackageAxis& axis, const Node& reference) {
  const auto of = reference.get<std::string>("tensor_id"),
             id = reference.get<std::string>("axis_id");
  for (const PackageAxis& other : tensor.axes) {
    if (other.id != id || of != tensor.id) continue;
    const double ratio = other.scale / axis.scale;
    const auto scaled = [&](int64_t size) {
      return static_cast<int64_t>(static_cast<double>(size) * ratio + axis.offset);
    };
    axis.size = other.size == 0 ? 0 : scaled(other.size);
    axis.min = scaled(other.min);
    axis.step = static_cast<int64_t>(static_cast<double>(other.step) * ratio);
    axis.scale = ratio;
    return;
  }
  refuse_package(reference, "there is no axis '" + printable(id) + "' of '" + printable(of) + "'");
}

void Package::read_old_axes(PackageTensor& tensor, bool is_input) {
  const Node& axes = tensor.node->at("axes");
  const auto letters = axes.as<std::string>();
  const Node& shape = tensor.node->at("shape");
  const bool is_relative = !is_input && shape.is_map();
  const auto numbers = [&](const Node& list) {
    std::vector<double> values = mapped(
        list.list, [&](const Node& number) { return number.is_null() ? 0 : number.as<double>(); });
    if (values.size() != letters.size())
      refuse_package(list,
                     fmt::format("{} numbers for the axes {}", values.size(), printable(letters)));
    return values;
  };
  std::vector<double> min, step(letters.size(), 0), scale(letters.size(), 1),
      offset(letters.size(), 0), halo(letters.size(), 0);
  if (is_relative) {
    scale = numbers(shape.at("scale"));
    offset = numbers(shape.at("offset"));
    min.assign(letters.size(), 0);
  } else if (shape.is_map()) {
    min = numbers(shape.at("min"));
    step = numbers(shape.at("step"));
  } else {
    min = numbers(shape);
  }
  if (const Node* given = tensor.node->find_direct("halo"); given != nullptr && !given->is_null())
    halo = numbers(*given);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    PackageAxis axis;
    axis.node = &axes;
    axis.id = letters.substr(i, 1);
    if (std::string("bczyxti").find(letters[i]) == std::string::npos)
      refuse_package(axes, "'" + printable(letters) + "', expected letters of bitczyx");
    axis.letter = letters[i] == 't' || letters[i] == 'i' ? 'o' : letters[i];
    axis.halo = static_cast<int64_t>(halo[i]);
    if (is_relative) {
      axis.scale = scale[i];
      axis.offset = 2 * offset[i];
      if (scale[i] == 0) axis.size = static_cast<int64_t>(2 * offset[i]);
    } else {
      axis.min = static_cast<int64_t>(min[i]);
      axis.step = static_cast<int64_t>(step[i]);
      if (axis.step == 0) axis.size = axis.min;
    }
    tensor.axes.push_back(axis);
  }
}

void Package::add_operation(PackageTensor& tensor,
                            const Node& step,
                            const PackageTensor* input) const {
  Node copy = step;
  if (!is_old_) {
    if (Node* kwargs = copy.find_direct("kwargs")) rename_axes(tensor, *kwargs);
  } else {
    copy = Node::make_map();
    copy.set("id", step.at("name"));
    const Node* given = step.find_direct("kwargs");
    Node kwargs = given == nullptr ? Node::make_map() : *given;
    const Node* mode_node = kwargs.find_direct("mode");
    const std::string mode =
        mode_node == nullptr || mode_node->is_null() ? "" : mode_node->as<std::string>();
    std::vector<std::string> axes;
    if (const Node* letters = kwargs.find_direct("axes");
        letters != nullptr && !letters->is_null()) {
      if (mode == "per_dataset") axes.emplace_back("batch");
      for (const char letter : letters->as<std::string>()) {
        if (letter == 't' || letter == 'i') continue;  // of size 1
        if (std::string("bczyx").find(letter) == std::string::npos)
          refuse_package(*letters, "expected letters of bitczyx");
        axes.emplace_back(name_of_axis(letter));
      }
    }
    const auto id = step.get<std::string>("name");
    const bool is_fixed = id == "zero_mean_unit_variance" && (mode == "fixed" || mode.empty());
    if (is_fixed) {
      copy.set("id", Node::make_string("fixed_zero_mean_unit_variance"));
      remove_key(kwargs, "eps");
    }
    for (const char* key : {"mean", "std", "gain", "offset"}) {
      const Node* numbers = kwargs.find_direct(key);
      if (numbers == nullptr || numbers->list.size() < 2) continue;
      std::string along;  // the axes that are left
      for (const PackageAxis& axis : tensor.axes) {
        if (axis.letter != 'b' && axis.letter != 'o' && !contains(axes, name_of_axis(axis.letter)))
          along += axis.letter;
      }
      if (along != "c")
        refuse_package(*numbers, "numbers along the axes '" + along + "', expected channels alone");
    }
    remove_key(kwargs, "mode");
    remove_key(kwargs, "axes");
    if (!axes.empty() && !is_fixed && id != "scale_linear")
      kwargs.set("axes", Node::make_list(axes));
    copy.set("kwargs", kwargs);
  }
  if (Node* kwargs = copy.find_direct("kwargs")) name_reference(tensor, input, *kwargs);
  tensor.operations.list.push_back(std::move(copy));
}

AxisOrder::AxisOrder(const PackageTensor& tensor) {
  for (const PackageAxis& axis : tensor.axes) letters_ += axis.letter;
  for (const char letter : std::string("bczyx")) {
    const auto count = std::ranges::count(letters_, letter);
    if (count > 1) refuse_package(*tensor.node, fmt::format("the axis {} twice", letter));
    if (count == 1 || letter == 'b' || letter == 'c') own_ += letter;
  }
  for (const PackageAxis& axis : tensor.axes) {
    if (axis.letter == 'o' && axis.size != 1 && !(axis.size == 0 && axis.min == 1)) {
      refuse_package(*axis.node,
                     "the axis '" + printable(axis.id) + "' of time or index, expected size 1");
    }
  }
  if (own_.size() < 4 || own_.substr(own_.size() - 2) != "yx")
    refuse_package(*tensor.node, "expected the axes y and x, or z, y and x");
}

Tensor AxisOrder::to_package(Tensor windows) const {
  std::vector<int64_t> order;
  for (const char letter : letters_)
    if (letter != 'o') order.push_back(static_cast<int64_t>(own_.find(letter)));
  for (const char letter : {'c', 'b'}) {  // the later one first
    if (letters_.find(letter) != std::string::npos) continue;
    const auto dim = static_cast<int64_t>(own_.find(letter));
    windows = windows.squeeze(dim);
    for (int64_t& place : order)
      if (place > dim) --place;
  }
  windows = windows.permute(order);
  for (std::size_t i = 0; i < letters_.size(); ++i)
    if (letters_[i] == 'o') windows = windows.unsqueeze(static_cast<int64_t>(i));
  return windows.contiguous();
}

Tensor AxisOrder::to_own(Tensor tensor) const {
  if (tensor.dim() != std::ssize(letters_)) {
    throw DataError(
        "a tensor ({}), expected the axes {}", fmt::join(tensor.sizes(), ","), letters_);
  }
  std::string left;
  for (std::size_t i = letters_.size(); i-- > 0;) {
    const auto dim = static_cast<int64_t>(i);
    if (letters_[i] == 'o' && tensor.size(dim) != 1)
      throw DataError("{} along an axis of time or index, expected 1", tensor.size(dim));
    if (letters_[i] == 'o')
      tensor = tensor.select(dim, 0);
    else
      left.insert(left.begin(), letters_[i]);
  }
  for (const char letter : {'c', 'b'}) {
    if (left.find(letter) != std::string::npos) continue;
    tensor = tensor.unsqueeze(0);
    left.insert(left.begin(), letter);
  }
  std::vector<int64_t> order;
  for (const char letter : own_) order.push_back(static_cast<int64_t>(left.find(letter)));
  return tensor.permute(order).contiguous();
}

}  // namespace cytra::inference
