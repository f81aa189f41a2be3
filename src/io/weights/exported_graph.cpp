// Part of io/weights/exported_json.h: the graph, of the unions of the schema.
#include <limits>

#include "base/strings.h"
#include "io/weights/exported_json.h"

namespace cytra::io {
namespace {

using Json = nlohmann::json;
using Argument = ExportedArgument;

constexpr std::size_t kMostText = std::size_t{128} << 20, kMostItems = 10'000;
constexpr int kMostDepth = 32;

constexpr ExportedScalarType kScalarTypes[] = {{1, 0, "U8"},
                                               {2, 1, "I8"},
                                               {3, 2, "I16"},
                                               {4, 3, "I32"},
                                               {5, 4, "I64"},
                                               {6, 5, "F16"},
                                               {7, 6, "F32"},
                                               {8, 7, "F64"},
                                               {9, 8, nullptr},
                                               {10, 9, nullptr},
                                               {11, 10, nullptr},
                                               {12, 11, "BOOL"},
                                               {13, 15, "BF16"},
                                               {28, 27, "U16"}};

/// A number: JSON has no infinity, which torch writes as a text.
double real_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  throw DataError("'{}' is no number", printable(text));
}

/// The one entry of a union: its name and its value. torch's older versions write the others as
/// null.
std::pair<std::string, const Json*> entry_of(const Json& json) {
  std::pair<std::string, const Json*> found{"", nullptr};
  for (const auto& item : json.items()) {
    if (item.value().is_null() && found.second != nullptr) continue;
    if (found.second == nullptr || found.second->is_null()) found = {item.key(), &item.value()};
  }
  if (!json.is_object() || found.second == nullptr) throw DataError("a value has no type");
  return found;
}

Argument value_named(const std::string& name) {
  Argument argument;
  argument.kind = Argument::Kind::value;
  argument.text = name;
  return argument;
}

Argument argument_of(const Json& json, int depth = 0);

/// A number that is given, or the name of one that the graph computes: SymIntArgument and its like.
Argument symbol_of(const Json& json) {
  const auto [kind, value] = entry_of(json);
  if (kind == "as_name") return value_named(value->get<std::string>());
  return argument_of(json);
}

template <class Item>
Argument list_of(const Json& json, const Item& item) {
  if (!json.is_array() || json.size() > kMostItems) throw DataError("a list is expected");
  Argument list;
  list.kind = Argument::Kind::list;
  for (const Json& one : json) list.items.push_back(item(one));
  return list;
}

Argument tensor_argument(const Json& json) {
  return value_named(json.at("name").get<std::string>());
}

Argument scalar_argument(Argument::Kind kind, const Json& json) {
  Argument argument;
  argument.kind = kind;
  if (kind == Argument::Kind::integer) argument.integer = exported_whole(json);
  if (kind == Argument::Kind::real) argument.real = real_of(json);
  if (kind == Argument::Kind::boolean) argument.integer = json.get<bool>() ? 1 : 0;
  if (kind == Argument::Kind::text) argument.text = json.get<std::string>();
  if (kind == Argument::Kind::scalar_type)
    argument.integer = exported_scalar_type(exported_whole(json)).torch;
  if (kind == Argument::Kind::memory_format) {
    constexpr int64_t kFormats[] = {-1, 0, 2, 3, 1};  // to c10::MemoryFormat
    const int64_t number = exported_whole(json);
    if (number < 1 || number > 4) throw DataError("an unknown memory format");
    argument.integer = kFormats[number];
  }
  if (kind == Argument::Kind::layout && exported_whole(json) != 7)
    throw DataError("a layout of tensors that is not strided");
  if (kind == Argument::Kind::device) argument.text = json.at("type").get<std::string>();
  return argument;
}

Argument argument_of(const Json& json, int depth) {
  using Kind = Argument::Kind;
  if (depth > kMostDepth) throw DataError("lists within lists");
  const auto [kind, value_pointer] = entry_of(json);
  const Json& value = *value_pointer;
  const auto scalars = [&](Kind of) {
    return list_of(value, [&](const Json& one) { return scalar_argument(of, one); });
  };
  if (kind == "as_none") return {};
  if (kind == "as_tensor") return tensor_argument(value);
  if (kind == "as_tensors") return list_of(value, tensor_argument);
  if (kind == "as_optional_tensor") return argument_of(value, depth + 1);
  if (kind == "as_optional_tensors")
    return list_of(value, [&](const Json& one) { return argument_of(one, depth + 1); });
  if (kind == "as_nested_tensors")
    return list_of(value, [](const Json& one) { return list_of(one, tensor_argument); });
  if (kind == "as_int") return scalar_argument(Kind::integer, value);
  if (kind == "as_ints") return scalars(Kind::integer);
  if (kind == "as_int_lists") {
    return list_of(value, [](const Json& one) {
      return list_of(one, [](const Json& n) { return scalar_argument(Kind::integer, n); });
    });
  }
  if (kind == "as_float") return scalar_argument(Kind::real, value);
  if (kind == "as_floats") return scalars(Kind::real);
  if (kind == "as_bool") return scalar_argument(Kind::boolean, value);
  if (kind == "as_bools") return scalars(Kind::boolean);
  if (kind == "as_string") return scalar_argument(Kind::text, value);
  if (kind == "as_strings") return scalars(Kind::text);
  if (kind == "as_scalar_type") return scalar_argument(Kind::scalar_type, value);
  if (kind == "as_memory_format") return scalar_argument(Kind::memory_format, value);
  if (kind == "as_layout") return scalar_argument(Kind::layout, value);
  if (kind == "as_device") return scalar_argument(Kind::device, value);
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
    return symbol_of(value);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
    return list_of(value, symbol_of);
  Argument other;
  other.kind = Kind::other;
  other.text = kind;
  return other;
}

/// The module of a call, of "L__self__,,Net;L__self__b,b,torch.nn.modules.batchnorm.BatchNorm2d".
std::string place_of(const Json& call) {
  const auto metadata = call.find("metadata");
  if (metadata == call.end() || !metadata->is_object()) return "";
  const std::string stack = metadata->value("nn_module_stack", "");
  const std::string last = stack.substr(stack.rfind(';') + 1);
  const std::size_t begin = last.find(',');
  const std::size_t end = last.rfind(',');
  return begin == std::string::npos || begin == end ? "" : last.substr(begin + 1, end - begin - 1);
}

ExportedShape shape_of(const Json& json) {
  ExportedShape shape;
  const char* const dtype = exported_scalar_type(exported_whole(json.at("dtype"))).ours;
  shape.dtype = dtype == nullptr ? "complex" : dtype;
  for (const Json& side : json.at("sizes")) {
    const auto [kind, value] = entry_of(side);
    if (kind == "as_int") {
      shape.sides.push_back({exported_whole(*value), ""});
    } else {
      shape.sides.push_back({std::nullopt, value->at("expr_str").get<std::string>()});
    }
  }
  return shape;
}

ExportedInput input_of(const Json& json) {
  using Kind = ExportedInput::Kind;
  const auto [kind, value] = entry_of(json);
  const auto of = [&json = *value](Kind is, const char* name) {
    return ExportedInput{
        is, json.at("arg").at("name").get<std::string>(), json.at(name).get<std::string>()};
  };
  if (kind == "parameter") return of(Kind::parameter, "parameter_name");
  if (kind == "buffer") {
    ExportedInput buffer = of(Kind::buffer, "buffer_name");
    buffer.is_persistent = value->value("persistent", true);
    return buffer;
  }
  if (kind == "tensor_constant") return of(Kind::constant, "tensor_constant_name");
  if (kind == "user_input") {
    const Argument argument = argument_of(value->at("arg"));
    if (argument.kind == Argument::Kind::value) return {Kind::user, argument.text, ""};
    throw DataError("forward() takes an argument that is no tensor");
  }
  if (kind == "constant_input") {
    throw DataError("forward() takes '{}', which is no tensor; give it a default",
                    printable(value->value("name", "")));
  }
  throw DataError("an input of the kind {} is not supported", printable(kind));
}

ExportedOutput output_of(const Json& json) {
  const auto [kind, value] = entry_of(json);
  if (kind == "user_output") return {argument_of(value->at("arg")), ""};
  if (kind == "buffer_mutation") {
    return {tensor_argument(value->at("arg")), value->at("buffer_name").get<std::string>()};
  }
  throw DataError("an output of the kind {} is not supported", printable(kind));
}

}  // namespace

ExportedArgument exported_argument_of(const Json& json) {
  return argument_of(json);
}

ExportedCall exported_call_of(const Json& json) {
  ExportedCall call;
  call.target = json.at("target").get<std::string>();
  call.place = place_of(json);
  for (const Json& input : json.at("inputs")) {
    call.inputs.push_back(argument_of(input.at("arg")));
    call.inputs.back().parameter = input.at("name").get<std::string>();
  }
  for (const Json& output : json.at("outputs")) call.outputs.push_back(argument_of(output));
  return call;
}

[[noreturn]] void refuse_program(const std::string& path, const std::string& what) {
  throw DataError(
      "{}: {}, expected a network as torch.export.save(program, 'net.pt2') writes it (PyTorch 2.7 "
      "to 2.15)",
      path,
      printable(what, 600));
}

const ExportedScalarType& exported_scalar_type(int64_t number) {
  for (const ExportedScalarType& type : kScalarTypes)
    if (type.exported == number) return type;
  throw DataError("the type {} of torch.export's schema is not supported", number);
}

int64_t exported_whole(const Json& json) {
  if (!json.is_number_integer()) throw DataError("a whole number is expected");
  if (json.is_number_unsigned() &&
      json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw DataError("a number is too large");
  return json.get<int64_t>();
}

ExportedGraph exported_graph_of(const Json& json) {
  ExportedGraph result;
  const int64_t version = exported_whole(json.at("schema_version").at("major"));
  if (version != 8) throw DataError("version {} of torch.export's schema, 8 is supported", version);
  const Json& module = json.at("graph_module");
  const Json& graph = module.at("graph");
  for (const Json& input : module.at("signature").at("input_specs"))
    result.inputs.push_back(input_of(input));
  for (const Json& output : module.at("signature").at("output_specs"))
    result.outputs.push_back(output_of(output));
  const std::map<std::string, std::string> names = add_exported_calls(graph.at("nodes"), result);
  const auto add_shape = [&](const std::string& name) {
    const auto found = graph.at("tensor_values").find(name);
    if (found != graph.at("tensor_values").end()) result.shapes[name] = shape_of(*found);
  };
  for (const ExportedInput& input : result.inputs)
    if (input.kind == ExportedInput::Kind::user) add_shape(input.value);
  for (ExportedOutput& output : result.outputs) {
    if (output.argument.kind != Argument::Kind::value) continue;
    add_shape(output.argument.text);
    const auto inlined = names.find(output.argument.text);
    if (inlined == names.end()) continue;
    if (const auto shape = result.shapes.find(output.argument.text); shape != result.shapes.end())
      result.shapes[inlined->second] = shape->second;
    output.argument.text = inlined->second;
  }
  for (const auto& item : json.at("range_constraints").items()) {
    ExportedRange range;
    const auto bound = [&](const char* name) -> std::optional<int64_t> {
      const auto found = item.value().find(name);
      if (found == item.value().end() || !found->is_number_integer()) return {};
      return exported_whole(*found);
    };
    range.least = bound("min_val");
    range.most = bound("max_val");
    result.ranges[item.key()] = range;
  }
  if (const auto guards = json.find("guards_code"); guards != json.end() && guards->is_array())
    result.guards = guards->get<std::vector<std::string>>();
  for (const Json& entry : module.value("module_call_graph", Json::array())) {
    if (entry.value("fqn", "?") != "" || !entry.at("signature").is_object()) continue;
    result.output_tree = entry.at("signature").value("out_spec", "");
  }
  result.aliases = json.value("aliases", result.aliases);
  return result;
}

Json parse_exported_graph(std::string_view text) {
  if (text.size() > kMostText) throw DataError("a graph of more than 128 MB");
  const auto keep = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kMostDepth) throw DataError("values within values");
    if (event != Json::parse_event_t::key) return true;
    const auto& key = value.get_ref<const std::string&>();
    return key != "stack_trace" && key != "torch_fn" && key != "strides" && key != "from_node" &&
           key != "source_fn_stack" && key != "sym_int_values";
  };
  return Json::parse(text, keep);
}

void keep_only_named_shapes(Json& json) {
  Json& graph = json.at("graph_module").at("graph");
  Json kept = Json::object();
  for (const char* list : {"inputs", "outputs"}) {
    for (const Json& argument : graph.at(list)) {
      if (!argument.contains("as_tensor")) continue;
      const std::string name = tensor_argument(argument.at("as_tensor")).text;
      const auto shape = graph.at("tensor_values").find(name);
      if (shape != graph.at("tensor_values").end()) kept[name] = *shape;
    }
  }
  graph["tensor_values"] = std::move(kept);
}

}  // namespace cytra::io
