#include "app/serve/tensor_input.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "data/image_tensor.h"

namespace cytra::app {
namespace {

constexpr int64_t kMostNumbers = 16 << 20;  // that JSON may hold

struct TensorType {
  const char* name;     // of the protocol
  at::ScalarType sent;  // as it comes
  io::Dtype dtype;      // as images have it
  int64_t bits;         // of whole numbers; 0: of floats
  bool is_signed = false;
};
const std::vector<TensorType> kTensorTypes{{"UINT8", at::kByte, io::Dtype::u8, 8},
                                           {"INT8", at::kChar, io::Dtype::i8, 8, true},
                                           {"UINT16", at::kUInt16, io::Dtype::u16, 16},
                                           {"INT16", at::kShort, io::Dtype::i16, 16, true},
                                           {"UINT32", at::kUInt32, io::Dtype::u32, 32},
                                           {"INT32", at::kInt, io::Dtype::i32, 32, true},
                                           {"FP32", at::kFloat, io::Dtype::f32, 0},
                                           {"FP64", at::kDouble, io::Dtype::f64, 0},
                                           {"BOOL", at::kByte, io::Dtype::u8, 1},
                                           {"UINT64", at::kUInt64, io::Dtype::f64, 64},
                                           {"INT64", at::kLong, io::Dtype::f64, 64, true},
                                           {"FP16", at::kHalf, io::Dtype::f32, 0},
                                           {"BF16", at::kBFloat16, io::Dtype::f32, 0}};

const TensorType& type_of_name(const std::string& name) {
  std::vector<std::string> names;
  for (const TensorType& type : kTensorTypes) {
    if (name == type.name) return type;
    names.emplace_back(type.name);
  }
  throw HttpError(
      400, fmt::format("datatype {}: expected one of {}", printable(name, 20), join(names, ", ")));
}

/// The least and the greatest value of a type of whole numbers; none of floats.
std::optional<std::pair<double, double>> range_of(const TensorType& type) {
  if (type.bits == 0) return std::nullopt;
  const double values = std::ldexp(1.0, static_cast<int>(type.bits));
  return type.is_signed ? std::pair(-values / 2, values / 2 - 1) : std::pair(0.0, values - 1);
}

/// The bytes of values as images have them. Types of 64 bits become FP64, as any model computes
/// with less.
std::string as_image_bytes(std::string bytes, const TensorType& type) {
  const auto item = static_cast<std::size_t>(c10::elementSize(type.sent));
  const auto count = static_cast<int64_t>(bytes.size() / item);
  at::Tensor values = at::from_blob(bytes.data(), {count}, type.sent);
  if (type.bits == 1) values = values.ne(0).to(at::kByte);
  if (type.bits == 64) values = values.to(at::kDouble);
  if (type.bits == 0 && item == 2) values = values.to(at::kFloat);
  if (values.data_ptr() == bytes.data()) return bytes;
  return {static_cast<const char*>(values.const_data_ptr()), values.nbytes()};
}

/// Numbers of JSON, in one list or in lists of lists as the shape says.
class JsonNumbers {
 public:
  JsonNumbers(const InputTensor& input, const TensorType& type, at::Tensor& into)
      : input_(input), type_(type), range_(range_of(type)), into_(into) {}
  void add(const Json& data, std::size_t depth = 0) {
    if (!data.is_array()) return add_number(data);
    const bool is_nested = depth > 0 || (!data.empty() && data[0].is_array());
    if (is_nested &&
        (depth >= input_.shape.size() || static_cast<int64_t>(data.size()) != input_.shape[depth]))
      throw HttpError(400,
                      fmt::format("data: lists of other lengths than the shape ({})",
                                  fmt::join(input_.shape, ",")));
    for (const Json& item : data) add(item, depth + 1);
  }
  int64_t count() const { return count_; }

 private:
  void add_number(const Json& item) {
    if (!item.is_number() && !item.is_boolean()) throw HttpError(400, "data: expected numbers");
    const double value = item.is_boolean() ? item.get<bool>() : item.get<double>();
    if (range_ && (value < range_->first || value > range_->second || value != std::floor(value)))
      throw HttpError(400,
                      fmt::format("data: {}, expected whole numbers from {} to {} for {}",
                                  item.dump(),
                                  range_->first,
                                  range_->second,
                                  type_.name));
    if (count_ < into_.numel()) into_.mutable_data_ptr<double>()[count_] = value;
    ++count_;
  }

  const InputTensor& input_;
  const TensorType& type_;
  const std::optional<std::pair<double, double>> range_;
  at::Tensor& into_;
  int64_t count_ = 0;
};

/// Whether two outputs are written to the same bytes of a region.
bool share_bytes(const OutputTensor& a, const OutputTensor& b) {
  const OutputTensor &first = a.offset <= b.offset ? a : b, &second = a.offset <= b.offset ? b : a;
  return !a.region.empty() && a.region == b.region &&
         static_cast<uint64_t>(second.offset) - static_cast<uint64_t>(first.offset) <
             static_cast<uint64_t>(first.bytes);
}

}  // namespace

const char* type_name(io::Dtype dtype) {
  for (const TensorType& type : kTensorTypes)
    if (type.dtype == dtype) return type.name;
  return "";
}

InputTensor input_of(const Json& body,
                     std::string binary,
                     const SharedRegions& regions,
                     int64_t dims) {
  const auto found = body.find("inputs");
  if (found == body.end() || !found->is_array() || found->size() != 1 || !(*found)[0].is_object())
    throw HttpError(400, "inputs: expected one, image");
  const Json& given = (*found)[0];
  if (const auto name = json_member<std::string>(given, "name", "a text"); name != "image")
    throw HttpError(400, fmt::format("inputs: {}: expected image", printable(name, 40)));
  InputTensor input;
  const TensorType& type = type_of_name(json_member<std::string>(given, "datatype", "a text"));
  input.dtype = type.dtype;
  input.shape = json_member<std::vector<int64_t>>(given, "shape", "a list of whole numbers");
  const auto rank = static_cast<int64_t>(input.shape.size());
  if (rank < dims || rank > dims + 2) {
    const char* sides = dims == 2 ? "H,W" : "D,H,W";
    throw HttpError(400,
                    fmt::format("shape ({}): expected (N,C,{}), (C,{}) or ({})",
                                fmt::join(input.shape, ","),
                                sides,
                                sides,
                                sides));
  }
  int64_t values = 1;
  for (const int64_t side : input.shape) {
    if (side < 1 || side > (int64_t{1} << 40) / values)
      throw HttpError(400,
                      fmt::format("shape ({}): expected sides of 1 to 2^40 values in all",
                                  fmt::join(input.shape, ",")));
    values *= side;
  }
  std::vector<int64_t> shape = input.shape;
  if (rank == dims + 2) {
    input.count = shape.front();
    shape.erase(shape.begin());
  }
  if (rank == dims) shape.insert(shape.begin(), 1);
  if (dims == 2) shape.insert(shape.begin() + 1, 1);
  std::copy(shape.begin(), shape.end(), input.one.begin());
  const int64_t bytes = values * static_cast<int64_t>(c10::elementSize(type.sent));
  const auto expect_bytes = [&](int64_t size) {
    if (size != bytes)
      throw HttpError(
          400, fmt::format("image: {} bytes, but its shape and datatype need {}", size, bytes));
  };
  const Json& parameters = parameters_of(given);
  if (given.contains("data") + parameters.contains("binary_data_size") +
          parameters.contains("shared_memory_region") >
      1)
    throw HttpError(400, "image: expected one of data, binary_data_size and shared_memory_region");
  if (parameters.contains("shared_memory_region")) {
    const auto size = json_member<int64_t>(parameters, "shared_memory_byte_size", "a whole number");
    expect_bytes(size);
    SharedRegions::Content content = regions.read(
        json_member<std::string>(parameters, "shared_memory_region", "a text"),
        json_member_or<int64_t>(parameters, "shared_memory_offset", "a whole number", 0),
        size);
    input.bytes = as_image_bytes(std::move(content.bytes), type);
    input.place = std::move(content.place);
  } else if (parameters.contains("binary_data_size")) {
    const auto size = json_member<int64_t>(parameters, "binary_data_size", "a whole number");
    expect_bytes(size);
    expect_bytes(static_cast<int64_t>(binary.size()));
    input.bytes = as_image_bytes(std::move(binary), type);
  } else if (given.contains("data")) {
    if (values > kMostNumbers) expect_bytes(0);
    at::Tensor numbers = at::empty({values}, at::kDouble);
    JsonNumbers read(input, type, numbers);
    read.add(given["data"]);
    if (read.count() != values)
      throw HttpError(
          400, fmt::format("data: {} numbers, but the shape needs {}", read.count(), values));
    const io::Image image = data::to_image(numbers.view({1, 1, values}), input.dtype, {});
    input.bytes.assign(image.pixels.begin(), image.pixels.end());
  } else {
    throw HttpError(400, "image: expected data, binary_data_size or shared_memory_region");
  }
  return input;
}

std::vector<OutputTensor> outputs_of(const Json& body, const std::string& usual) {
  const bool is_binary =
      json_member_or<bool>(parameters_of(body), "binary_data_output", "true or false", false);
  std::vector<OutputTensor> outputs;
  if (!body.contains("outputs") || body["outputs"].empty()) return {{usual, "", 0, 0, is_binary}};
  if (!body["outputs"].is_array() || body["outputs"].size() > 8)
    throw HttpError(400, "outputs: expected a list of 1 to 8");
  for (const Json& given : body["outputs"]) {
    if (!given.is_object()) throw HttpError(400, "outputs: expected objects");
    const Json& parameters = parameters_of(given);
    if (parameters.contains("classification"))
      throw HttpError(400, "classification: results are images, expected no classes of them");
    OutputTensor output;
    output.name = json_member<std::string>(given, "name", "a text");
    output.is_binary = json_member_or<bool>(parameters, "binary_data", "true or false", is_binary);
    output.region = json_member_or<std::string>(parameters, "shared_memory_region", "a text", "");
    output.offset =
        json_member_or<int64_t>(parameters, "shared_memory_offset", "a whole number", 0);
    output.bytes =
        json_member_or<int64_t>(parameters, "shared_memory_byte_size", "a whole number", 0);
    for (const OutputTensor& other : outputs) {
      if (other.name == output.name)
        throw HttpError(400,
                        fmt::format("outputs: {}: is named twice", printable(output.name, 40)));
      if (share_bytes(output, other))
        throw HttpError(400,
                        fmt::format("outputs: {} and {} overlap in the region {}",
                                    printable(other.name, 40),
                                    printable(output.name, 40),
                                    printable(output.region, 40)));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace cytra::app
