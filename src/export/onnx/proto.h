#pragma once
// Messages of onnx.proto, written in protobuf's wire format:
// https://protobuf.dev/programming-guides/encoding
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::exporting::onnx {

/// The fields of one message, in the order in which they are added.
class Message {
 public:
  Message& number(int field, int64_t value);
  Message& real(int field, float value);
  Message& text(int field, std::string_view value);
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  std::string bytes_;
};

/// Attributes of a node, by name.
class Attributes {
 public:
  Attributes& add(const char* name, int64_t value);
  Attributes& add(const char* name, double value);
  Attributes& add(const char* name, const char* value);
  Attributes& add(const char* name, const std::vector<int64_t>& values);
  const std::vector<Message>& all() const { return all_; }

 private:
  std::vector<Message> all_;
};

Message node_proto(const std::string& type,
                   const std::vector<std::string>& inputs,
                   const std::string& output,
                   const Attributes& attributes);
/// A tensor of float32 or int64 on the CPU as a message. Throws: DataError for another type.
Message tensor_proto(const std::string& name, const at::Tensor& tensor);
/// A float32 input or output; a dimension is its size, or a name where it may be any.
Message value_proto(const std::string& name, const std::vector<std::string>& shape);
/// The message of the whole file.
std::string model_proto(const Message& graph, const std::map<std::string, std::string>& metadata);

}  // namespace cytra::exporting::onnx
