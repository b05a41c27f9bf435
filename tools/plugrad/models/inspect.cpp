// plugrad inspect: what an ONNX file holds, and what a call of it computes, without running it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/file.h"
#include "command.h"
#include "models/work.h"
#include "onnx/file/file_errors.h"
#include "onnx/file/messages.h"
#include "onnx/import/declared.h"
#include "onnx/import/graph_run.h"
#include "plugrad/device.h"
#include "plugrad/onnx.h"

namespace plugrad::tools {
namespace {

using Json = nlohmann::ordered_json;
using onnx::ModelMessage;

// Nodes by operator, those of subgraphs and functions included.
void count(const std::vector<onnx::NodeMessage>& nodes, std::map<std::string, int64_t>& counts) {
  for (const onnx::NodeMessage& node : nodes) {
    ++counts[node.domain.empty() ? std::string(node.op)
                                 : fmt::format("{}.{}", node.domain, node.op)];
    for (const auto& attribute : node.attributes)
      for (const auto& graph : attribute.graphs) count(graph->nodes, counts);
  }
}

int64_t element_count_of(const onnx::TensorMessage& tensor) {
  int64_t elements = 1;
  for (const int64_t size : tensor.dims) elements *= size;
  return elements;
}

// Elements of initialisers and of Constant nodes, those of subgraphs included.
int64_t parameters_of(const onnx::GraphMessage& graph) {
  int64_t total = 0;
  for (const onnx::TensorMessage& tensor : graph.constants) total += element_count_of(tensor);
  for (const onnx::NodeMessage& node : graph.nodes)
    for (const auto& attribute : node.attributes) {
      if (node.op == "Constant")
        for (const onnx::TensorMessage& tensor : attribute.tensors)
          total += element_count_of(tensor);
      for (const auto& inner : attribute.graphs) total += parameters_of(*inner);
    }
  return total;
}

Json json_of(const std::vector<onnx::ValueInfo>& values) {
  Json list = Json::array();
  for (const onnx::ValueInfo& value : values) {
    Json sizes = Json::array();
    for (const auto& dim : value.shape.value_or(std::vector<onnx::Dimension>()))
      sizes.push_back(dim.size           ? Json(*dim.size)
                      : dim.name.empty() ? Json(nullptr)
                                         : Json(dim.name));
    list.push_back({{"name", value.name}, {"type", value.type}, {"shape", sizes}});
  }
  return list;
}

Json document_of(const std::string& path, const ModelMessage& model) {
  std::map<std::string, int64_t> operators;
  count(model.graph.nodes, operators);
  for (const auto& function : model.functions) count(function.nodes, operators);
  Json opsets = Json::object();
  for (const auto& opset : model.opsets)
    opsets[opset.domain.empty() ? "ai.onnx" : std::string(opset.domain)] = opset.version;
  std::vector<std::string> missing;
  for (const auto& [name, nodes] : onnx::missing_operators(model)) missing.push_back(name);
  Json metadata = Json::object();
  for (const auto& entry : model.metadata)
    metadata[std::string(entry.key)] = std::string(entry.value);
  return {{"model", path},
          {"ir_version", model.ir_version},
          {"opsets", opsets},
          {"producer", model.producer_version.empty()
                           ? std::string(model.producer)
                           : fmt::format("{} {}", model.producer, model.producer_version)},
          {"inputs", json_of(onnx::inputs_of(model))},
          {"outputs", json_of(onnx::outputs_of(model))},
          {"parameters", parameters_of(model.graph)},
          {"metadata", metadata},
          {"operators", operators},
          {"missing_operators", missing}};
}

// The beginning of a text in quotes, with control characters and line breaks as escapes.
std::string beginning(const std::string& text) {
  constexpr size_t kMost = 60;
  const std::string quoted =
      Json(text.substr(0, kMost)).dump(-1, ' ', false, Json::error_handler_t::ignore);
  return text.size() > kMost ? quoted + "…" : quoted;
}

// Errors in a model are part of what it holds.
Json work_json(const std::string& path, const GivenInputs& given) try {
  const ModelWork work = with_assumed_sizes(given.assumed, [&] { return work_of(path, given); });
  Json document = {{"device", work.device},
                   {"multiply_adds", work.multiply_adds},
                   {"nodes", work.nodes},
                   {"nodes_of_host", work.nodes_of_host},
                   {"kernels", work.kernels}};
  if (!work.problem.empty()) document["problem"] = work.problem;
  return document;
} catch (const Error& error) {
  return {{"device", Device::default_device()}, {"problem", error.what()}};
}

std::string shapes_of(const std::vector<onnx::ValueInfo>& inputs, const GivenInputs& given) {
  std::string shapes;
  for (const auto& input : inputs) {
    const auto at = given.tensors.find(input.name);
    shapes += fmt::format(
        " {} {}", input.name,
        to_string(at == given.tensors.end() ? shape_of(input, given.sizes) : at->second.shape()));
  }
  return shapes;
}

void print_work(const Json& work, const std::vector<onnx::ValueInfo>& inputs,
                const GivenInputs& given) {
  const std::string device = work["device"];
  fmt::print("a call with{}\n", inputs.empty() ? " no inputs" : shapes_of(inputs, given));
  if (work.contains("nodes"))
    fmt::print(
        "  {} multiply-adds; {} of {} nodes are computed by the host, the others by {} "
        "kernels on {}\n",
        work["multiply_adds"].get<int64_t>(), work["nodes_of_host"].get<int64_t>(),
        work["nodes"].get<int64_t>(), work["kernels"].get<int64_t>(), device);
  if (work.contains("problem"))
    fmt::print("  it fails on {}: {}\n", device, work["problem"].get<std::string>());
}

std::string list_of(const std::vector<onnx::ValueInfo>& values) {
  std::string text;
  for (const auto& value : values) text += "  " + to_string(value) + "\n";
  return text;
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  const Syntax syntax = inspect_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto files = parsed.has("file") ? parsed.get<Arguments>("file") : Arguments();
  if (files.size() != 1) throw UsageError(fmt::format("say which model\nusage: {}", syntax.usage));
  const MappedFile file(files[0], "inspect");
  const ModelMessage model =
      onnx::with_name(files[0], [&] { return onnx::read_model(file.bytes()); });
  const auto pairs = [&](const char* option) {
    return parsed.has(option) ? parse_key_values(parsed.get<Arguments>(option), option) : Names();
  };
  const Names sizes = pairs("size"), texts = pairs("input");
  const std::vector<onnx::ValueInfo> inputs = onnx::inputs_of(model);
  require_names("size", sizes, open_sizes(inputs));
  require_names("input", texts, names_of(inputs));
  if (parsed.has("device")) choose_device(parsed.get<std::string>("device"));
  const GivenInputs given = given_inputs(inputs, sizes, texts);
  Json document = document_of(files[0], model);
  if (document["missing_operators"].empty()) document["call"] = work_json(files[0], given);
  if (parsed.has("json")) return print_json(document), kSuccess;
  fmt::print("inputs\n{}outputs\n{}", list_of(inputs), list_of(onnx::outputs_of(model)));
  fmt::print("parameters  {}\nIR version  {}\n", document["parameters"].get<int64_t>(),
             model.ir_version);
  for (const auto& [domain, version] : document["opsets"].items())
    fmt::print("opset       {} {}\n", domain, version.get<int64_t>());
  for (const auto& [key, value] : document["metadata"].items())
    fmt::print("{:10}  {}\n", key, beginning(value.get<std::string>()));
  fmt::print("operators  ");
  for (const auto& [name, nodes] : document["operators"].items())
    fmt::print(" {} {}", nodes.get<int64_t>(), name);
  fmt::print("\n");
  const auto missing = document["missing_operators"].get<std::vector<std::string>>();
  if (!missing.empty())
    fmt::print("plugrad does not have  {}\n", fmt::join(missing, ", "));
  else
    print_work(document["call"], inputs, given);
  return kSuccess;
}

}  // namespace plugrad::tools
