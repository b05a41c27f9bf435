// Ops that the device does not claim for a dtype become ops that it does.
//   before   exp2 f32 %x        after   a polynomial, where the device has no exp2
//   before   add f16 %a, %b     after   cast f16 (add f32 (cast f32 %a), (cast f32 %b)), where it has no f16 arithmetic
#include "base/check.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/small_floats.h"
#include "codegen/passes/transcendental.h"
#include "uop/facts.h"

namespace plugrad::codegen {
namespace {

class Decomposer {
 public:
  Decomposer(Graph& graph, const pgr_device_caps& caps) : g_(graph), caps_(caps) {}

  // The root of a graph that means the same in claimed ops. What replaces a node is looked at again.
  Id operator()(Id root) {
    std::vector<Id> stack = {root};
    while (!stack.empty()) {
      const Id id = stack.back();
      if (done(id) != kNoId) {
        stack.pop_back();
        continue;
      }
      const size_t waiting = stack.size();
      for (Id s : g_.sources(id))
        if (done(s) == kNoId) stack.push_back(s);
      if (stack.size() > waiting) continue;
      const Id rebuilt = rebuild(id), replaced = step(rebuilt);
      if (replaced == rebuilt) {
        set_done(rebuilt, rebuilt);
        set_done(id, rebuilt);
      } else if (done(replaced) != kNoId) {
        set_done(id, done(replaced));
      } else {
        stack.push_back(replaced);
      }
    }
    return done(root);
  }

 private:
  Id done(Id id) const { return id < done_.size() ? done_[id] : kNoId; }
  void set_done(Id id, Id result) {
    if (done_.size() <= id) done_.resize(g_.size(), kNoId);
    done_[id] = result;
  }
  Id rebuild(Id id) {
    std::vector<Id> sources;
    for (Id s : g_.sources(id)) sources.push_back(done(s));
    return g_.with_sources(id, sources);
  }

  bool claims(Op op, DType dtype) const {
    const auto number = static_cast<size_t>(op);
    return number < 64 && (caps_.op_dtypes[number] >> static_cast<size_t>(dtype) & 1) != 0;
  }

  // One decomposition of a node whose sources are claimed already; the node itself where there is none to do.
  Id step(Id id) {
    const Node& n = g_[id];
    if (!is_alu(n.op)) return id;
    if (n.op == Op::Cast) return step_cast(id);
    const DType dtype = is_compare(n.op) ? g_[n.src[0]].dtype : n.op == Op::Where ? n.dtype : n.dtype;
    if (n.op == Op::Bitcast || claims(n.op, dtype)) return id;
    if (is_small_float(dtype) && n.op != Op::Where) return in_f32(id);
    const Id replaced = by_op(id, dtype);
    if (replaced == id)
      fail(ErrorKind::Unsupported, "[codegen] the device has no {} for {} and nothing to make it of; cast to another dtype",
           op_info(n.op).name, name_of(dtype));
    return replaced;
  }

  Id by_op(Id id, DType dtype) {
    const Node& n = g_[id];
    const Id a = n.src[0], b = n.src_count > 1 ? n.src[1] : kNoId;
    switch (n.op) {
      case Op::Exp2: return is_float(dtype) ? make_exp2(g_, a) : id;
      case Op::Log2: return is_float(dtype) ? make_log2(g_, a) : id;
      case Op::Sin: return is_float(dtype) ? make_sin(g_, a) : id;
      case Op::Trunc: return is_float(dtype) ? make_trunc(g_, a) : id;
      case Op::Recip: return g_.binary(Op::FDiv, g_.constant(dtype, 1.0), a);
      case Op::FDiv: return claims(Op::Recip, dtype) ? g_.binary(Op::Mul, a, g_.unary(Op::Recip, b)) : id;
      case Op::Fma: return g_.binary(Op::Add, g_.binary(Op::Mul, a, b), n.src[2]);
      case Op::Sub: return g_.binary(Op::Add, a, g_.unary(Op::Neg, b));
      case Op::Neg: return g_.binary(Op::Mul, a, g_.constant(dtype, int64_t{-1}));
      case Op::Max: return make_max(a, b, dtype);
      case Op::CmpEq: return invert(g_.binary(Op::CmpNe, a, b));
      case Op::CmpNe: return claims(Op::CmpEq, dtype) ? invert(g_.binary(Op::CmpEq, a, b)) : id;
      default: return id;
    }
  }

  Id invert(Id condition) { return g_.binary(Op::Xor, condition, g_.constant(DType::Bool, int64_t{1})); }

  // NaN wins from either side: it is not less than anything, and anything that is not itself is taken.
  Id make_max(Id a, Id b, DType dtype) {
    const Id larger = g_.where(g_.binary(Op::CmpLt, a, b), b, a);
    return is_float(dtype) ? g_.where(g_.binary(Op::CmpNe, b, b), b, larger) : larger;
  }

  // f16 and bf16 have so few bits that add, multiply, divide and square root in f32 round correctly when the
  // result is rounded a second time.
  Id in_f32(Id id) {
    const Node& n = g_[id];
    std::vector<Id> sources;
    for (Id s : g_.sources(id)) sources.push_back(is_small_float(g_[s].dtype) ? g_.cast(s, DType::F32) : s);
    if (is_compare(n.op)) return g_.add(n.op, DType::Bool, sources, n.arg);
    return g_.cast(g_.add(n.op, DType::F32, sources, n.arg), n.dtype);
  }

  Id step_cast(Id id) {
    const Node& n = g_[id];
    const Id x = n.src[0];
    const DType from = g_[x].dtype, to = n.dtype;
    if (!is_small_float(from) && !is_small_float(to)) return id;
    const DType small = is_small_float(from) ? from : to;
    if (claims(Op::Cast, small)) return id;
    if (is_small_float(from)) {
      const Id wide = small_to_f32(g_, x);
      return to == DType::F32 ? wide : g_.cast(wide, to);
    }
    // From f64 and wide integers by way of f32 would round twice; they say so in docs/kernel-ir.md.
    return f32_to_small(g_, g_.cast(x, DType::F32), to);
  }

  Graph& g_;
  const pgr_device_caps& caps_;
  std::vector<Id> done_;
};

}  // namespace

void decompose(Kernel& kernel) {
  kernel.sink = Decomposer(kernel.graph, *kernel.caps)(kernel.sink);
  compact(kernel);
}

}  // namespace plugrad::codegen
