#include "models/work.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/check.h"
#include "base/file.h"
#include "engine/session.h"
#include "ir/facts.h"
#include "onnx/file/graph_check.h"
#include "onnx/import/data.h"
#include "onnx/import/declared.h"
#include "onnx/import/graph_run.h"
#include "plugrad/device.h"
#include "tensor/handles.h"

namespace plugrad::tools {
namespace {

using States = std::vector<engine::TensorState*>;

// Elements of products that are summed, as far as the outputs need them.
std::int64_t multiply_adds_of(const States& outputs) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  const Graph& graph = session.graph();
  std::vector<Id> roots;
  for (const engine::TensorState* output : outputs) roots.push_back(output->node);
  std::int64_t total = 0;
  Reachable reachable;
  for (const Id id : reachable.from(graph, roots)) {
    if (graph[id].op != Op::Reduce || static_cast<Op>(graph.arg_list(id)[0]) != Op::Add) continue;
    Id summed = graph.sources(id)[0];
    while (graph[summed].op == Op::Cast) summed = graph.sources(summed)[0];
    if (graph[summed].op == Op::Mul) total += element_count(session.shape(summed));
  }
  return total;
}

std::map<std::string_view, onnx::Value> inputs_of(const onnx::ModelMessage& model,
                                                  const GivenInputs& given) {
  std::map<std::string_view, onnx::Value> inputs;
  const std::vector<onnx::ValueInfo> infos = onnx::inputs_of(model);
  const auto declared = onnx::declared_inputs(model);
  for (size_t i = 0; i < infos.size(); ++i) {
    const onnx::ValueInfo& input = infos[i];
    const auto at = given.tensors.find(input.name);
    if (at != given.tensors.end()) {
      const std::string what = onnx::mismatch(at->second, declared[i]->type);
      require(what.empty(), "[onnx] input \"{}\" {}, the model expects {}", input.name, what,
              to_string(input));
      inputs.emplace(declared[i]->name,
                     onnx::value_of(at->second, declared[i]->type, Device::default_device()));
      continue;
    }
    require(input.dtype.has_value(), "input \"{}\" is a {}, of which no elements can be made up",
            input.name, input.type);
    const Shape shape = shape_of(input, given.sizes);
    inputs.emplace(declared[i]->name, Tensor::zeros(shape, *input.dtype).contiguous().realize());
  }
  return inputs;
}

}  // namespace

ModelWork work_of(const std::string& path, const GivenInputs& given) {
  const auto file = std::make_shared<CopiedFile>(path, "inspect");
  const onnx::ModelMessage model = onnx::read_model(file->bytes());
  onnx::require_operators(model);
  onnx::require_sound(model);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  onnx::ModelFiles files(folder.empty() ? "." : folder, file);
  files.read_constants(model.graph);
  onnx::GraphRun run(model, files, false);
  ModelWork work;
  work.device = Device::default_device();
  std::vector<Tensor> outputs;  // lazy
  for (const onnx::Value& output : run.outputs_of_model(inputs_of(model, given)))
    if (output.is_tensor()) outputs.push_back(output.tensor());
  States states;
  for (const Tensor& output : outputs) states.push_back(tensor::state_of(output).get());
  work.nodes = run.nodes();
  work.nodes_of_host = run.folded_nodes();
  work.multiply_adds = multiply_adds_of(states);
  engine::Session& session = engine::Session::current();
  work.kernels = session.planned_kernels_of(states).size();
  try {
    session.sources_of(states);
  } catch (const Error& error) {
    work.problem = error.what();
  }
  return work;
}

}  // namespace plugrad::tools
