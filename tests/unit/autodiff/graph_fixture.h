// A separate graph with buffers of known values, for tests of derivatives.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "autodiff/gradient.h"
#include "oracle/evaluator.h"

namespace plugrad::autodiff {

struct GraphFixture : testing::Test {
  Graph g;
  Shapes shapes{g};
  Devices devices{g};
  Context context{g, shapes, devices};
  std::map<Id, oracle::Array> leaves;

  Id buffer(std::vector<int64_t> shape, std::vector<double> values, DType dtype = DType::F64,
            uint32_t device = 1) {
    std::vector<int64_t> list = {static_cast<int64_t>(leaves.size()) + 1, device};
    list.insert(list.end(), shape.begin(), shape.end());
    const Id id = g.add(Op::Buffer, dtype, {}, g.list(list));
    oracle::Array array{dtype, shape, {}};
    for (double v : values) array.bits.push_back(bits_of(v, dtype));
    leaves[id] = array;
    return id;
  }
  Id number(double value, DType dtype = DType::F64) { return g.constant(dtype, value); }
  Id move(Op op, Id x, std::vector<int64_t> list) {
    return g.add(op, g[x].dtype, {x}, g.list(list));
  }
  Id reduce(Op op, Id x, std::vector<int64_t> axes) {
    axes.insert(axes.begin(), static_cast<int64_t>(op));
    return move(Op::Reduce, x, axes);
  }
  std::vector<double> values(Id id) {
    const oracle::Array array =
        oracle::evaluate(g, std::span(&id, 1), [&](Id leaf) { return leaves.at(leaf); })[0];
    std::vector<double> result;
    for (size_t i = 0; i < array.size(); ++i) result.push_back(array.real(i));
    return result;
  }
  /// d (sum of y) / d x
  Id derivative(Id y, Id x, double seed = 1.0) {
    return gradient(context, y, number(seed, g[y].dtype), std::span(&x, 1))[0];
  }
};

}  // namespace plugrad::autodiff
