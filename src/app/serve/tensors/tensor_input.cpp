#include "app/serve/tensors/tensor_input.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/serve/http/json_body.h"
#include "base/strings.h"
#include "data/sample/image_tensor.h"

namespace cytra::app {
namespace {

constexpr int64_t kMostNumbers = 16 << 20;  // that JSON may hold

struct TensorType {
  const char* name;     // of the protocol
  at::ScalarType sent;  // as it comes
  io::Dtype dtype;      // as images have it
  bool is_boolean = false;
};
const std::vector<TensorType> kTensorTypes{{"UINT8", at::kByte, io::Dtype::u8},
                                           {"INT8", at::kChar, io::Dtype::i8},
                                           {"UINT16", at::kUInt16, io::Dtype::u16},
                                           {"INT16", at::kShort, io::Dtype::i16},
                                           {"UINT32", at::kUInt32, io::Dtype::u32},
                                           {"INT32", at::kInt, io::Dtype::i32},
                                           {"FP32", at::kFloat, io::Dtype::f32},
                                           {"FP64", at::kDouble, io::Dtype::f64},
                                           {"BOOL", at::kByte, io::Dtype::u8, true},
                                           {"UINT64", at::kUInt64, io::Dtype::f64},
                                           {"INT64", at::kLong, io::Dtype::f64},
                                           {"FP16", at::kHalf, io::Dtype::f32},
                                           {"BF16", at::kBFloat16, io::Dtype::f32}};

const TensorType& type_of_name(const std::string& name) {
  std::vector<std::string> names;
  for (const TensorType& type : kTensorTypes) {
    if (name == type.name) return type;
    names.emplace_back(type.name);
  }
  throw HttpError(400, "datatype {}: expected one of {}", printable(name, 20), join(names, ", "));
}

/// The least and the greatest value of a type of whole numbers; none of floats.
std::optional<std::pair<double, double>> range_of(const TensorType& type) {
  if (at::isFloatingType(type.sent)) return std::nullopt;
  const auto bytes = static_cast<int>(c10::elementSize(type.sent));
  const double values = std::ldexp(1.0, type.is_boolean ? 1 : 8 * bytes);
  return at::isSignedType(type.sent) ? std::pair(-values / 2, values / 2 - 1)
                                     : std::pair(0.0, values - 1);
}

/// The bytes of values as images have them. Types of 64 bits become FP64, as any model computes
/// with less.
std::string as_image_bytes(std::string bytes, const TensorType& type) {
  const auto count = static_cast<int64_t>(bytes.size() / c10::elementSize(type.sent));
  at::Tensor values = at::from_blob(bytes.data(), {count}, type.sent);
  if (type.is_boolean) values = values.ne(0).to(at::kByte);
  if (type.dtype == io::Dtype::f64) values = values.to(at::kDouble);
  if (type.dtype == io::Dtype::f32) values = values.to(at::kFloat);
  if (values.data_ptr() == bytes.data()) return bytes;
  return {static_cast<const char*>(values.const_data_ptr()), values.nbytes()};
}

double json_number(const Json& item, const TensorType& type) {
  if (!item.is_number() && !item.is_boolean()) throw HttpError(400, "data: expected numbers");
  const double value = item.is_boolean() ? item.get<bool>() : item.get<double>();
  const auto range = range_of(type);
  if (range && (value < range->first || value > range->second || value != std::floor(value)))
    throw HttpError(400,
                    "data: {}, expected whole numbers from {} to {} for {}",
                    item.dump(),
                    range->first,
                    range->second,
                    type.name);
  return value;
}

/// Adds numbers of JSON, in one list or in lists of lists as the shape says.
void add_numbers(const Json& data,
                 const std::vector<int64_t>& shape,
                 const TensorType& type,
                 std::vector<double>& into,
                 std::size_t depth = 0) {
  if (!data.is_array()) return into.push_back(json_number(data, type));
  const bool is_nested = depth > 0 || (!data.empty() && data[0].is_array());
  if (is_nested && (depth >= shape.size() || std::ssize(data) != shape[depth]))
    throw HttpError(400, "data: lists of other lengths than the shape ({})", fmt::join(shape, ","));
  for (const Json& item : data) add_numbers(item, shape, type, into, depth + 1);
}

/// Reads what the sides of an input stand for. Throws: HttpError.
void place_sides(InputTensor& input, int64_t dims, int64_t channels) {
  std::vector<int64_t> shape = input.shape;
  const std::size_t rank = shape.size();
  const auto are_channels = [&](int64_t side) {  // also those of grey that is saved in colours
    return side == channels || (channels == 1 && (side == 3 || side == 4));
  };
  const bool is_stack =
      dims == 2 && (rank == 5 || (rank == 3 && channels == 1 && !are_channels(shape[0])) ||
                    (rank == 4 && !are_channels(shape[1]) && are_channels(shape[0])));
  input.dims = is_stack ? 3 : static_cast<std::size_t>(dims);
  if (rank < input.dims || rank > input.dims + 2) {
    const char* sides = dims == 2 ? "[D,]H,W" : "D,H,W";
    throw HttpError(
        400, "shape ({0}): expected (N,C,{1}), (C,{1}) or ({1})", fmt::join(shape, ","), sides);
  }
  if (is_stack && rank < 5 && shape.back() <= 4)
    throw HttpError(400,
                    "shape ({}): expected channels before H and W, or a stack as (N,C,D,H,W)",
                    fmt::join(shape, ","));
  if (rank == input.dims + 2) {
    input.count = shape.front();
    shape.erase(shape.begin());
  }
  if (rank == input.dims) shape.insert(shape.begin(), 1);
  if (input.dims == 2) shape.insert(shape.begin() + 1, 1);
  std::copy(shape.begin(), shape.end(), input.one.begin());
}

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
                     int64_t dims,
                     int64_t channels) {
  const auto found = body.find("inputs");
  if (found == body.end() || !found->is_array() || found->size() != 1 || !(*found)[0].is_object())
    throw HttpError(400, "inputs: expected one, image");
  const Json& given = (*found)[0];
  if (const auto name = json_member<std::string>(given, "name", "a text"); name != "image")
    throw HttpError(400, "inputs: {}: expected image", printable(name, 40));
  InputTensor input;
  const TensorType& type = type_of_name(json_member<std::string>(given, "datatype", "a text"));
  input.dtype = type.dtype;
  input.shape = json_member<std::vector<int64_t>>(given, "shape", "a list of whole numbers");
  int64_t values = 1;
  for (const int64_t side : input.shape) {
    if (side < 1 || side > (int64_t{1} << 40) / values)
      throw HttpError(400,
                      "shape ({}): expected sides of 1 to 2^40 values in all",
                      fmt::join(input.shape, ","));
    values *= side;
  }
  place_sides(input, dims, channels);
  const int64_t bytes = values * static_cast<int64_t>(c10::elementSize(type.sent));
  const auto expect_bytes = [&](int64_t size) {
    if (size != bytes)
      throw HttpError(400, "image: {} bytes, but its shape and datatype need {}", size, bytes);
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
    input.share = std::move(content.share);
  } else if (parameters.contains("binary_data_size")) {
    const auto size = json_member<int64_t>(parameters, "binary_data_size", "a whole number");
    expect_bytes(size);
    expect_bytes(std::ssize(binary));
    input.bytes = as_image_bytes(std::move(binary), type);
  } else if (given.contains("data")) {
    if (values > kMostNumbers)
      throw HttpError(413,
                      "data: {} numbers, expected at most {} as JSON; binary_data_size or shared "
                      "memory takes more",
                      values,
                      kMostNumbers);
    std::vector<double> numbers;
    add_numbers(given["data"], input.shape, type, numbers);
    if (std::ssize(numbers) != values)
      throw HttpError(400, "data: {} numbers, but the shape needs {}", numbers.size(), values);
    const at::Tensor own = at::from_blob(numbers.data(), {1, 1, values}, at::kDouble);
    const io::Image image = data::to_image(own, input.dtype, {});
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
        throw HttpError(400, "outputs: {}: is named twice", printable(output.name, 40));
      if (share_bytes(output, other))
        throw HttpError(400,
                        "outputs: {} and {} overlap in the region {}",
                        printable(other.name, 40),
                        printable(output.name, 40),
                        printable(output.region, 40));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace cytra::app
