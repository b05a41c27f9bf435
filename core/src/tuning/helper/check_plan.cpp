#include "tuning/helper/check_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "ir/facts.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "ir/structural_hash.h"
#include "symbolic/bounds.h"
#include "symbolic/symbolic.h"
#include "tuning/helper/bitwise_comparable.h"

namespace plugrad::tuning {
namespace {

using codegen::nodes_of;

bool is_access(Op op) {
  return op == Op::Load || op == Op::Store || op == Op::AtomicAdd;
}

// A gated access may have any index while its gate is false.
bool has_gate(const Graph& g, Id access) {
  return g.sources(access).size() > (g[access].op == Op::Load ? 2u : 3u);
}

Id param_of(const Graph& g, Id access) {
  return g.sources(access)[0];
}

std::vector<Id> accesses_of(const Graph& g, Id sink) {
  Reachable reachable;
  std::vector<Id> out;
  for (Id id : reachable.from(g, std::span(&sink, 1)))
    if (is_access(g[id].op) && g[param_of(g, id)].op == Op::Param) out.push_back(id);
  return out;
}

// Finds bounds for the contents of buffers from which indices are computed.
class SafeContents {
 public:
  explicit SafeContents(const KernelAst& ast)
      : g_(ast.graph), accesses_(accesses_of(g_, ast.sink)) {
    for (Id access : accesses_) {
      if (has_gate(g_, access)) continue;
      for (Id load : nodes_of(g_, g_.sources(access)[1], Op::Load)) below_[param_of(g_, load)] = 1;
    }
    for (auto& [param, below] : below_)
      if (is_integer(g_[param].dtype)) below = largest(param);
  }

  uint64_t below(Id param) const {
    const auto it = below_.find(param);
    return it == below_.end() ? 0 : it->second;
  }

 private:
  // The largest bound for which interval analysis proves that no index leaves its buffer; otherwise
  // 1.
  uint64_t largest(Id param) {
    uint64_t low = 1, high = 2;
    for (Id access : accesses_)
      high = std::max(high,
                      static_cast<uint64_t>(param_info(g_, param_of(g_, access)).elem_count) + 1);
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (is_safe(param, middle) ? low : high) = middle;
    }
    return low;
  }

  bool is_safe(Id param, uint64_t bound) {
    Bounds bounds(g_);
    std::vector<Id> loads = nodes_of_all(Op::Load);
    for (Id load : loads) {
      const auto it = below_.find(param_of(g_, load));
      if (it == below_.end() || !is_integer(g_[load].dtype)) continue;
      const uint64_t below = it->first == param ? bound : it->second;
      bounds.set(load, {0, static_cast<int64_t>(below) - 1});
    }
    return std::ranges::all_of(accesses_, [&](Id access) {
      if (has_gate(g_, access) || nodes_of(g_, g_.sources(access)[1], Op::Load).empty())
        return true;
      const Interval index = bounds[g_.sources(access)[1]];
      return index.lo >= 0 && index.hi < param_info(g_, param_of(g_, access)).elem_count;
    });
  }

  std::vector<Id> nodes_of_all(Op op) const {
    std::vector<Id> out;
    for (Id id : accesses_)
      if (g_[id].op == op) out.push_back(id);
    return out;
  }

  const Graph& g_;
  std::vector<Id> accesses_;
  std::map<Id, uint64_t> below_;
};

std::vector<Id> loops_of(const Graph& g, Id sink) {
  std::vector<Id> ranges = nodes_of(g, sink, Op::Range);
  std::ranges::sort(ranges, {}, [&](Id r) { return range_axis(g[r]); });
  return ranges;
}

}  // namespace

std::vector<ParamSpec> params_of(const KernelAst& ast) {
  const SafeContents safe(ast);
  std::vector<ParamSpec> out(ast.param_count);
  for (Id id : nodes_of(ast.graph, ast.sink, Op::Param)) {
    const ParamInfo info = param_info(ast.graph, id);
    if (info.slot >= out.size()) out.resize(info.slot + 1);
    out[info.slot] = {static_cast<uint64_t>(info.elem_count),
                      static_cast<uint32_t>(ast.graph[id].dtype), info.flags & ~kParamShared,
                      safe.below(id)};
  }
  for (ParamSpec& spec : out)
    if (spec.elem_count == 1 && spec.below == 0 && (spec.flags & PGR_PARAM_WRITE) == 0 &&
        (spec.dtype == PGR_DTYPE_I32 || spec.dtype == PGR_DTYPE_I64))
      spec.below = ParamSpec::kAllPlaces;
  for (ParamSpec& spec : out)  // scalars that the kernel does not use
    if (spec.elem_count == 0) spec = {1, static_cast<uint32_t>(DType::F32), PGR_PARAM_READ, 0};
  return out;
}

std::vector<int64_t> loop_sizes(const KernelAst& ast) {
  std::vector<int64_t> out;
  for (Id range : loops_of(ast.graph, ast.sink)) out.push_back(range_size(ast.graph, range));
  return out;
}

double iterations_of(const KernelAst& ast) {
  double count = 1;
  for (int64_t size : loop_sizes(ast)) count *= static_cast<double>(size);
  return count;
}

ReferenceAst reference_of(const KernelAst& ast, double iterations) {
  ReferenceAst reference;
  Graph& g = reference.graph;
  reference.sink = codegen::copy_into(g, ast.graph, ast.sink);
  double excess = iterations_of(ast) / iterations;
  std::vector<std::pair<Id, Id>> sampled;
  for (Id range : loops_of(g, reference.sink)) {
    const int64_t size = range_size(g, range);
    if (excess <= 1 || range_kind(g[range]) != AxisKind::Loop || size <= 4) continue;
    const int64_t kept = std::clamp<int64_t>(
        static_cast<int64_t>(std::ceil(static_cast<double>(size) / excess)), 4, size);
    excess *= static_cast<double>(kept) / static_cast<double>(size);
    const Id fewer = make_range(g, kept, range_axis(g[range]), AxisKind::Loop);
    const Id spread = g.binary(Op::Mul, fewer, g.index(size - 1));
    sampled.emplace_back(range, g.add(Op::FloorDiv, DType::Index, {spread, g.index(kept - 1)}));
  }
  reference.is_sample = !sampled.empty();
  reference.sink = substitute(g, reference.sink, sampled);
  return reference;
}

double tolerance_of(const KernelAst& ast) {
  return is_exact(ast) ? 0 : rounding_of(ast);
}

double rounding_of(const KernelAst& ast) {
  const Graph& g = ast.graph;
  double terms = 1, stored = 0;
  for (Id reduce : nodes_of(g, ast.sink, Op::Reduce)) {
    double length = 1;
    for (Id range : codegen::reduce_parts(g, reduce).ranges)
      length *= static_cast<double>(range_size(g, range));
    terms = std::max(terms, length);
  }
  for (Id param : nodes_of(g, ast.sink, Op::Param)) {
    const DType dtype = g[param].dtype;
    if (!is_float(dtype) || !(param_info(g, param).flags & PGR_PARAM_WRITE)) continue;
    const double epsilon = dtype == DType::F64    ? 0x1p-52
                           : dtype == DType::F32  ? 0x1p-23
                           : dtype == DType::F16  ? 0x1p-10
                           : dtype == DType::BF16 ? 0x1p-7
                                                  : 0x1p-2;
    stored = std::max(stored, 2 * epsilon);
  }
  // Each partial sum of either order rounds once, and errors of the terms add to it.
  return stored + 0x1p-23 * (16 + 4 * std::sqrt(terms));
}

std::string family_of(const KernelAst& ast) {
  StructuralHash hash(ast.graph);
  Reachable reachable;
  for (Id id : reachable.from(ast.graph, std::span(&ast.sink, 1))) {
    const Node& n = ast.graph[id];
    if (n.op == Op::Const && n.dtype == DType::Index) hash.name(id, 0);
    if (n.op == Op::Param) hash.name(id, param_info(ast.graph, id).slot + 1);
  }
  return to_string(hash(ast.sink));
}

}  // namespace plugrad::tuning
