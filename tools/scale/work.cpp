#include "scale/work.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "codegen/kernel.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::tools::scale {
namespace {

/// A value below its casts, and the narrowest float dtype on the way.
struct Uncast {
  Id value;
  DType dtype;
};

Uncast without_casts(const Graph& graph, Id id) {
  Uncast found{id, graph[id].dtype};
  while (graph[found.value].op == Op::Cast || graph[found.value].op == Op::Keep) {
    found.value = graph.sources(found.value)[0];
    const DType dtype = graph[found.value].dtype;
    if (is_float(dtype) && size_of(dtype) < size_of(found.dtype)) found.dtype = dtype;
  }
  return found;
}

/// The dtype that both factors are rounded to, the wider of the two; none if the value is no
/// product of floats.
std::optional<DType> factor_of(const Graph& graph, Id value) {
  const Id product = without_casts(graph, value).value;
  if (graph[product].op != Op::Mul || !is_float(graph[product].dtype)) return std::nullopt;
  const DType a = without_casts(graph, graph.sources(product)[0]).dtype,
              b = without_casts(graph, graph.sources(product)[1]).dtype;
  return size_of(a) >= size_of(b) ? a : b;
}

void add_node(const Graph& graph, Id id, KernelWork& work, std::vector<uint64_t>& words) {
  const Node& node = graph[id];
  if (node.op == Op::Const && node.dtype == DType::Index) return;  // a size
  words.push_back(static_cast<uint64_t>(node.op) << 8 | static_cast<uint64_t>(node.dtype));
  if (node.op == Op::Param) {
    const ParamInfo info = param_info(graph, id);
    if ((info.flags & PGR_PARAM_WRITE) != 0) work.written.push_back(info.slot);
  }
  if (node.op != Op::Reduce) return;
  if (const auto factor = factor_of(graph, graph.sources(id)[0])) {
    work.is_matrix = true;
    work.factor = *factor;
  }
}

double rate_of(const Device& device, const KernelWork& work) {
  const auto matrix = device.matrix_rate.find(work.factor);
  if (work.is_matrix && matrix != device.matrix_rate.end())
    return matrix->second * device.efficiency.matrix;
  return device.vector_rate * device.efficiency.vector;
}

}  // namespace

/// Operations after reductions that only select have become single loads and stores.
double flops_of(const KernelAst& ast) {
  pgr_device_caps caps{};
  std::ranges::fill(caps.op_dtypes, ~uint32_t{0});
  codegen::Kernel kernel;
  kernel.caps = &caps;
  kernel.options.machine = std::make_shared<cost::Machine>();
  kernel.sink = codegen::copy_into(kernel.graph, ast.graph, ast.sink);
  kernel.param_count = ast.param_count;
  codegen::compact(kernel);
  codegen::eliminate_reductions(kernel);
  codegen::index_stores(kernel);
  return static_cast<double>(codegen::estimate(kernel).flops);
}

KernelWork work_of(const KernelAst& ast) {
  const codegen::Estimates estimates = codegen::describe(ast.graph, ast.sink).estimates;
  KernelWork work{.flops = static_cast<double>(estimates.flops),
                  .bytes = static_cast<double>(estimates.bytes),
                  .written = {}};
  work.traced = {work.flops, work.bytes};
  std::vector<uint64_t> words;
  Reachable reachable;
  bool has_reduction = false;
  for (const Id id : reachable.from(ast.graph, std::span(&ast.sink, 1))) {
    add_node(ast.graph, id, work, words);
    has_reduction |= ast.graph[id].op == Op::Reduce;
  }
  if (has_reduction && !work.is_matrix) work.flops = flops_of(ast);
  std::ranges::sort(words);
  work.structure = hash64(std::as_bytes(std::span(words)));
  return work;
}

const KernelWork& WorkTable::of(const KernelAst& ast) {
  const auto [at, is_new] = known_.try_emplace({ast.hash[0], ast.hash[1]});
  if (is_new) at->second = work_of(ast);
  return at->second;
}

double Corrections::of(const KernelWork& work) const {
  const auto known = by_structure.find(work.structure);
  return known != by_structure.end() ? known->second : work.is_matrix ? of_matrix : of_others;
}

double kernel_seconds(const Machine& machine, const KernelWork& work, bool is_shared) {
  const Device& device = machine.device;
  const double compute = is_shared ? machine.shared_compute : 1;
  const double memory = is_shared ? machine.shared_memory : 1;
  return device.launch_seconds +
         std::max(work.flops / (rate_of(device, work) * compute),
                  work.bytes / (device.memory_rate * device.efficiency.memory * memory));
}

}  // namespace plugrad::tools::scale
