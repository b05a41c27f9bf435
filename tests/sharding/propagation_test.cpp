// Each op of the propagation table, with every spec of its sources, against the evaluator.
#include "sharding/propagation.h"

#include <functional>
#include <set>

#include "base/settings.h"
#include "ir/op.h"
#include "sharding/meshes.h"
#include "tensor/record.h"

namespace plugrad {
namespace {

using Function = std::function<Tensor(const Tensor&, const Tensor&)>;
struct Case {
  Op op;
  Function function;  // of two sources of shape (4, 6)
};

Tensor whole(const Tensor& x) {
  return (x * 3).cast(DType::I32);
}

Tensor hashed(Op op, const Tensor& a, const Tensor& b) {
  const Tensor x = whole(a).cast(DType::U32), y = whole(b).cast(DType::U32);
  tensor::Recorder r("hashed");
  std::vector<Id> nodes = {r.use(x), r.use(y), r.use(y), r.use(x)};
  return r.done(r.graph().add(op, DType::U32, nodes));
}

std::vector<Case> cases() {
  const auto unary = [](auto f) { return [f](const Tensor& a, const Tensor&) { return f(a); }; };
  return {
      {Op::Add, [](auto& a, auto& b) { return a + b; }},
      {Op::Sub, [](auto& a, auto& b) { return a - b; }},
      {Op::Mul, [](auto& a, auto& b) { return a * b; }},
      {Op::FDiv, [](auto& a, auto& b) { return a / (b * b + 1); }},
      {Op::Max, [](auto& a, auto& b) { return a.maximum(b); }},
      {Op::CmpLt, [](auto& a, auto& b) { return a < b; }},
      {Op::CmpEq, [](auto& a, auto& b) { return a == b; }},
      {Op::CmpNe, [](auto& a, auto& b) { return a != b; }},
      {Op::Where, [](auto& a, auto& b) { return (a < 0).where(b, a); }},
      {Op::IDiv, [](auto& a, auto& b) { return whole(a).trunc_div(whole(b) * 2 + 1); }},
      {Op::Mod, [](auto& a, auto& b) { return whole(a).fmod(whole(b) * 2 + 1); }},
      {Op::FloorDiv, [](auto& a, auto& b) { return whole(a).floor_div(whole(b) * 2 + 1); }},
      {Op::FloorMod, [](auto& a, auto& b) { return whole(a) % (whole(b) * 2 + 1); }},
      {Op::And, [](auto& a, auto& b) { return whole(a) & whole(b); }},
      {Op::Or, [](auto& a, auto& b) { return whole(a) | whole(b); }},
      {Op::Xor, [](auto& a, auto& b) { return whole(a) ^ whole(b); }},
      {Op::Shl, [](auto& a, auto&) { return whole(a) << 2; }},
      {Op::Shr, [](auto& a, auto&) { return whole(a) >> 1; }},
      {Op::Neg, unary([](auto& a) { return -a; })},
      {Op::Recip, unary([](auto& a) { return (a * a + 1).reciprocal(); })},
      {Op::Sqrt, unary([](auto& a) { return a.abs().sqrt(); })},
      {Op::Trunc, unary([](auto& a) { return a.trunc(); })},
      {Op::Exp2, unary([](auto& a) { return a.exp2(); })},
      {Op::Log2, unary([](auto& a) { return (a.abs() + 1).log2(); })},
      {Op::Sin, unary([](auto& a) { return a.sin(); })},
      {Op::Exp, unary([](auto& a) { return a.exp(); })},
      {Op::Log, unary([](auto& a) { return (a.abs() + 1).log(); })},
      {Op::Pow, [](auto& a, auto& b) { return (a.abs() + 1).pow(b); }},
      {Op::Threefry0, [](auto& a, auto& b) { return hashed(Op::Threefry0, a, b); }},
      {Op::Threefry1, [](auto& a, auto& b) { return hashed(Op::Threefry1, a, b); }},
      {Op::Cos, unary([](auto& a) { return a.cos(); })},
      {Op::Tan, unary([](auto& a) { return a.tan(); })},
      {Op::Cast, unary([](auto& a) { return a.cast(DType::F64); })},
      // Terms of maxima and products, which pass through fewer ops than those of sums.
      {Op::Neg, unary([](auto& a) { return -a.max(0); })},
      {Op::Add, [](auto& a, auto& b) { return a.max(0) + b.max(0); }},
      {Op::Mul, [](auto& a, auto& b) { return a.max(0, true) * (b * -1.5); }},
      {Op::Cast, unary([](auto& a) { return (a * 0.25).prod(0).cast(DType::BF16); })},
      {Op::Pad, unary([](auto& a) { return a.prod(0).pad({{1, 2}}); })},
      {Op::Reduce, unary([](auto& a) { return a.max(0).sum(); })},
      {Op::Reduce, unary([](auto& a) { return (a * 0.25).prod(0).max(); })},
      {Op::Bitcast, unary([](auto& a) { return a.bitcast(DType::I32); })},
      {Op::Reshape, unary([](auto& a) { return a.reshape({2, 2, 6}); })},
      {Op::Reshape, unary([](auto& a) { return a.reshape({24}); })},
      {Op::Reshape, unary([](auto& a) { return a.reshape({4, 1, 3, 2}); })},
      {Op::Permute, unary([](auto& a) { return a.transpose(); })},
      {Op::Expand, unary([](auto& a) { return a.sum(0, true).expand({3, 6}); })},
      {Op::Pad, unary([](auto& a) { return a.pad(Pads{{1, 2}, {0, 0}}); })},
      {Op::Shrink, unary([](auto& a) { return a.shrink({{1, 3}, {0, 6}}); })},
      {Op::Flip, unary([](auto& a) { return a.flip(0); })},
      {Op::Reduce, unary([](auto& a) { return a.sum(); })},
      {Op::Reduce, unary([](auto& a) { return a.sum(1); })},
      {Op::Reduce, unary([](auto& a) { return a.max(0); })},
      {Op::Reduce, unary([](auto& a) { return (a * 0.1).prod(1); })},
      {Op::Contiguous, unary([](auto& a) { return a.contiguous() + 1; })},
      {Op::Detach, unary([](auto& a) { return a.detach() + 1; })},
      {Op::Reduce, [](auto& a, auto& b) { return a.matmul(b.transpose()); }},
      {Op::Reduce, [](auto& a, auto& b) { return (a.sum(0) * 2 + b.sum(0)).softmax(); }},
      {Op::Pad, [](auto& a, auto& b) { return cat({a, b}, 1); }},
      {Op::Shrink, unary([](auto& a) { return a.cumsum(0); })},
      {Op::Where, unary([](auto& a) { return a.sort(1).first; })},
  };
}

std::vector<ShardSpec> specs_of(const Mesh& mesh) {
  if (mesh.axes().size() == 1)
    return {{}, {"data"}, {"", "data"}, ShardSpec().with_partial_sum("data")};
  return {{},
          {"data"},
          {"", "model"},
          {"data", "model"},
          {"model", "data"},
          {"data+model"},
          ShardSpec({"", "data"}).with_partial_sum("model")};
}

TEST(Propagation, EveryOpWithEverySpec) {
  for (const Mesh& mesh : {two(), four(), two_by_two()})
    for (const Case& c : cases())
      for (const ShardSpec& left : specs_of(mesh))
        for (const ShardSpec& right : specs_of(mesh)) {
          const Tensor a = counting({4, 6}).shard(mesh, left);
          const Tensor b = counting({4, 6}, 2.0, -0.25).shard(mesh, right);
          expect_as_evaluated(c.function(a, b), std::string(op_info(c.op).name) + " of " +
                                                    left.to_string() + " and " + right.to_string() +
                                                    " on " + mesh.device());
        }
}

TEST(FastMath, TermsOfF32AreMovedAsBF16) {
  const Mesh mesh = two();
  const Tensor x = counting({4, 6}).cast(DType::BF16).shard(mesh, {"", "data"}).realize();
  const Tensor w = counting({6, 5}).cast(DType::BF16).shard(mesh, {"data"}).realize();
  const Tensor product = x.matmul(w);
  const bool fast = settings().fast_math;
  EXPECT_EQ(product.shard_spec().to_string(), fast ? "[-, -] partial add(data)" : "[-, -]");
  const std::string bytes = fast ? "40 bytes" : "80 bytes";
  EXPECT_THAT(describe_sharding(product.exp2()), testing::HasSubstr("along data: " + bytes));
  // Two terms and their sum, all below 512, are rounded to 8 bits.
  const auto values = product.to_vector<float>();
  const auto sums = counting({4, 6}).matmul(counting({6, 5})).to_vector<float>();
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_LE(std::abs(values[i] - sums[i]), 3.0F) << "element " << i;
}

TEST(FastMath, TermsOfF32AreNotMovedAsF16) {
  // In f16 the first term would be infinite.
  const Tensor x = Tensor::from<float>({70000, -10000}, {2}).shard(two(), {"data"}).realize();
  EXPECT_EQ(x.sum().cast(DType::F16).item<float>(), 60000);
}

TEST(Propagation, EveryRuleHasACase) {
  std::set<Op> covered = {Op::Shard, Op::Copy};  // in every case
  for (const Case& c : cases()) covered.insert(c.op);
  for (const sharding::Rule& rule : sharding::propagation_rules()) {
    if (rule.op == Op::UserKernel || rule.op == Op::Bounded || rule.op == Op::Function ||
        rule.op == Op::Fma)
      continue;
    EXPECT_TRUE(covered.contains(rule.op)) << op_info(rule.op).name;
  }
}

}  // namespace
}  // namespace plugrad
