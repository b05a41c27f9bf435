// Records a function of tensors and writes it as an ONNX file.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/file.h"
#include "engine/recording/rehearsal.h"
#include "ir/facts.h"
#include "jit/calls.h"
#include "onnx/export/translation.h"
#include "onnx/release.h"
#include "plugrad/nn/training.h"
#include "plugrad/no_grad.h"
#include "plugrad/onnx.h"
#include "tensor/handles.h"

namespace plugrad::onnx {
namespace {

using engine::Session;
using engine::StatePtr;

/// The node below views of all or some of its elements.
Id below_views(const Graph& g, Id id) {
  while (is_movement(g[id].op) && g[id].op != Op::Pad) id = g[id].src[0];
  return id;
}

std::vector<std::string> names_of(const std::vector<std::string>& given, std::string_view what,
                                  std::size_t count) {
  if (!given.empty()) {
    require(given.size() == count, "[onnx] {} names of {}s are given; the function has {}",
            given.size(), what, count);
    for (std::size_t i = 0; i < count; ++i)
      require(!given[i].empty() && std::ranges::find(given, given[i]) ==
                                       given.begin() + static_cast<std::ptrdiff_t>(i),
              "[onnx] the name \"{}\" of {} {} is empty or occurs twice", given[i], what, i);
    return given;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i)
    names.push_back(count == 1 ? std::string(what) : std::string(what) + "_" + std::to_string(i));
  return names;
}

/// A call of the function on tensors without values. Afterwards tensors that the function assigned
/// are as before.
class RecordedCall {
 public:
  RecordedCall(const TensorFunction& function, const std::vector<Tensor>& inputs)
      : session_(Session::current()), rehearsal_(session_) {
    for (const Tensor& input : inputs) inputs_.push_back(placeholder(input));
    {
      const jit_detail::InlineScope scope;
      const nn::TrainingScope evaluation(false);
      const NoGradScope no_gradients;
      outputs_ = function(inputs_);
    }
    const std::size_t assigned = rehearsal_.undo();
    std::string text;
    if (rehearsal_.drew_random())
      text += "\n  random numbers, which would be the same in every run";
    if (assigned > 0)
      text += fmt::format("\n  assignments to {} tensors that exist outside of it", assigned);
    if (!text.empty())
      fail(ErrorKind::Unsupported, "[onnx] ONNX cannot express parts of the function:{}", text);
    for (const Tensor& output : outputs_)
      require(output.defined(), "[onnx] the function returns an undefined tensor");
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// The nodes of tensors that existed before the call.
  std::span<const StatePtr> existing() const { return rehearsal_.existing(); }

 private:
  Tensor placeholder(const Tensor& like) {
    require(like.defined(), "[onnx] an input is undefined; assign it a value");
    const Session::Lock lock(session_);
    const StatePtr& state = tensor::state_of(like);
    uint32_t device = session_.devices()[state->node];
    if (device == 0) device = state->device == 0 ? session_.default_device() : state->device;
    return tensor::tensor_of(
        session_.make(session_.placeholder(like.shape(), strong(like.dtype()), device), device));
  }

  Session& session_;
  engine::Rehearsal rehearsal_;
  std::vector<Tensor> inputs_, outputs_;
};

std::vector<std::byte> elements_of(Session& session, Id id) {
  const StatePtr state = session.make(id);
  const auto shape = session.shape(id);
  std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(shape)) *
                               size_of(strong(session.graph()[id].dtype)));
  session.read(*state, bytes);
  return bytes;
}

/// Inputs, and the values that exist outside the function, which become initialisers.
class GivenNodes {
 public:
  GivenNodes(Session& session, GraphWriter& to) : session_(session), to_(to) {}

  void add_input(Id id, const std::string& name) {
    nodes_[id] = {[name] { return name; }, true};
  }
  void add(Id node, const std::string& name) {
    const Id id = below_views(session_.graph(), node);
    if (session_.devices()[id] == 0 || nodes_.contains(id)) return;
    nodes_[id].name = [this, id, name] {
      const auto sizes = session_.shape(id);
      return to_.initialiser(name, strong(session_.graph()[id].dtype),
                             Shape(sizes.begin(), sizes.end()), elements_of(session_, id));
    };
  }
  const NamedNodes& nodes() const { return nodes_; }

 private:
  Session& session_;
  GraphWriter& to_;
  NamedNodes nodes_;
};

/// The roots without nodes that show the same elements as their first source, so that the operators
/// of ONNX are found whether gradients were recorded or not.
std::vector<Id> without_aliases(Session& session, const std::vector<Id>& roots,
                                const NamedNodes& given) {
  Graph& graph = session.graph();
  Reachable reachable;
  std::vector<Id> nodes = reachable.from(graph, roots, [&](Id id) { return given.contains(id); });
  std::ranges::sort(nodes);  // sources first
  std::map<Id, Id> now;
  for (const Id id : nodes) {
    now[id] = id;
    if (given.contains(id)) continue;
    std::vector<Id> sources;
    for (const Id source : graph.sources(id)) sources.push_back(now.at(source));
    if (is_alias(graph[id].op)) {
      now[id] = sources[0];
    } else if (!std::ranges::equal(sources, graph.sources(id))) {
      now[id] = graph.with_sources(id, sources);
      session.note_place(now[id], session.place(id));
    }
  }
  std::vector<Id> result;
  for (const Id root : roots) result.push_back(now.at(root));
  return result;
}

}  // namespace

void save(const TensorFunction& function, const std::vector<Tensor>& inputs,
          const std::string& path, const SaveOptions& options) {
  require_release();
  const int error = check_replaceable(path);
  require(error == 0, "[onnx] \"{}\" cannot be written: {}", path, file_error_text(error));
  const auto input_names = names_of(options.input_names, "input", inputs.size());
  const RecordedCall call(function, inputs);
  const auto output_names = names_of(options.output_names, "output", call.outputs().size());
  Session& session = Session::current();
  const Session::Lock lock(session);
  GraphWriter to;
  for (const auto* names : {&input_names, &output_names})
    for (const std::string& name : *names)
      require(to.unique(name) == name, "[onnx] \"{}\" is the name of an input and an output", name);
  GivenNodes given(session, to);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = call.inputs()[i];
    given.add_input(tensor::state_of(x)->node, input_names[i]);
    to.input(input_names[i], x.dtype(), x.shape());
  }
  for (const auto& [name, tensor] : options.parameters)
    given.add(tensor::state_of(tensor)->node, name);
  for (const StatePtr& state : call.existing()) given.add(state->node, "constant");
  std::vector<Id> roots;
  for (const Tensor& output : call.outputs()) roots.push_back(tensor::state_of(output)->node);
  Reachable reachable;
  for (const Id id : reachable.from(session.graph(), roots))
    if (session.graph()[id].op == Op::Buffer) given.add(id, "constant");
  roots = without_aliases(session, roots, given.nodes());
  Translation translation(session, to, given.nodes());
  translation.translate(roots);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    to.rename(translation.root(roots[i]), output_names[i]);
    const auto sizes = session.shape(roots[i]);
    to.output(output_names[i], strong(session.graph()[roots[i]].dtype),
              Shape(sizes.begin(), sizes.end()));
  }
  to.write(path, options.external_data);
}

}  // namespace plugrad::onnx
