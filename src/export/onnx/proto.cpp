// Source of the field numbers: onnx/onnx.proto of ONNX 1.16 (IR version 8).
#include "export/onnx/proto.h"

#include <cstring>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/version.h"

namespace cytra::exporting::onnx {
namespace {

constexpr int64_t kIrVersion = 8, kOpset = 17;
constexpr int64_t kFloat32 = 1, kInt64 = 7;                      // TensorProto.DataType
constexpr int64_t kFloat = 1, kInt = 2, kString = 3, kInts = 7;  // AttributeProto.AttributeType

Message attribute(const char* name, int64_t type) {
  Message message;
  message.text(1, name).number(20, type);
  return message;
}

}  // namespace

void Message::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

Message& Message::number(int field, int64_t value) {
  varint(static_cast<uint64_t>(field) << 3);
  varint(static_cast<uint64_t>(value));
  return *this;
}

Message& Message::real(int field, float value) {
  varint(static_cast<uint64_t>(field) << 3 | 5);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  bytes_.append(bytes, sizeof value);
  return *this;
}

Message& Message::text(int field, std::string_view value) {
  varint(static_cast<uint64_t>(field) << 3 | 2);
  varint(value.size());
  bytes_ += value;
  return *this;
}

Attributes& Attributes::add(const char* name, int64_t value) {
  all_.push_back(attribute(name, kInt).number(3, value));
  return *this;
}

Attributes& Attributes::add(const char* name, double value) {
  all_.push_back(attribute(name, kFloat).real(2, static_cast<float>(value)));
  return *this;
}

Attributes& Attributes::add(const char* name, const char* value) {
  all_.push_back(attribute(name, kString).text(4, value));
  return *this;
}

Attributes& Attributes::add(const char* name, const std::vector<int64_t>& values) {
  Message message = attribute(name, kInts);
  for (const int64_t value : values) message.number(8, value);
  all_.push_back(std::move(message));
  return *this;
}

Message node_proto(const std::string& type,
                   const std::vector<std::string>& inputs,
                   const std::string& output,
                   const Attributes& attributes) {
  Message message;
  for (const std::string& input : inputs) message.text(1, input);
  message.text(2, output).text(3, output).text(4, type);
  for (const Message& one : attributes.all()) message.message(5, one);
  return message;
}

Message tensor_proto(const std::string& name, const at::Tensor& tensor) {
  const bool is_real = tensor.scalar_type() == at::kFloat;
  if (!is_real && tensor.scalar_type() != at::kLong)
    throw DataError(
        std::string("ONNX is written with float32 weights only, not with those of type ") +
        c10::toString(tensor.scalar_type()));
  const at::Tensor values = tensor.detach().cpu().contiguous();
  Message message;
  for (const int64_t size : values.sizes()) message.number(1, size);
  message.number(2, is_real ? kFloat32 : kInt64).text(8, name);
  return message.text(9,
                      {static_cast<const char*>(values.const_data_ptr()),
                       static_cast<std::size_t>(values.nbytes())});
}

Message value_proto(const std::string& name, const std::vector<std::string>& shape) {
  Message dimensions;
  for (const std::string& size : shape) {
    Message dimension;
    if (is_digit(size.front())) {
      dimension.number(1, std::stoll(size));
    } else {
      dimension.text(2, size);
    }
    dimensions.message(1, dimension);
  }
  Message type;
  type.message(1, Message().number(1, kFloat32).message(2, dimensions));
  return Message().text(1, name).message(2, type);
}

std::string model_proto(const Message& graph, const std::map<std::string, std::string>& metadata) {
  Message model;
  model.number(1, kIrVersion).text(2, "cytra").text(3, version()).message(7, graph);
  model.message(8, Message().text(1, "").number(2, kOpset));
  for (const auto& [key, value] : metadata)
    model.message(14, Message().text(1, key).text(2, value));
  return model.bytes();
}

}  // namespace cytra::exporting::onnx
