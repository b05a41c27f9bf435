// Nodes by hand: building, inspecting, matching, rewriting.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad::ir;
using plugrad::DType;
using plugrad::Tensor;

int main() {
  const UOp two = UOp::constant(2, DType::I32), sum = two + two;
  std::cout << sum;
  // %0 = const i32 2
  // %1 = add i32 %0, %0
  // return %1

  const Pattern a = Pattern::constant("a"), b = Pattern::constant("b"), x = Pattern::any("x");
  const PatternMatcher fold{{a + b, [](const Match& m) {
                               return UOp::constant(m["a"].integer() + m["b"].integer(),
                                                    m.root().dtype());
                             }}};
  std::cout << fold.rewrite(sum);  // const i32 4

  // The same rule as a pattern; structurally equal nodes are one node.
  const PatternMatcher same{{Pattern::op("add", {a, b}), a + b}};
  std::cout << (same.rewrite(sum) == fold.rewrite(sum)) << (sum.simplify() == fold.rewrite(sum))
            << "\n";  // 11

  // Tensors are nodes of the same graph.
  const Tensor t = Tensor::from({1, 2, 3});
  std::cout << ((t * 4).uop() == t.uop() * 4) << "\n";  // 1
  const PatternMatcher shift{
      {x * 4, [](const Match& m) { return UOp::make("shl", {m["x"], m["x"] * 0 + 2}); }}};
  std::cout << shift.rewrite((t * 4).uop()).tensor().to_vector<int>()[2] << "\n";  // 12
}
