// Helpers for making and reading tensors of the session, without the Tensor class.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "engine/session.h"

namespace plugrad::e2e {

class SessionTest : public testing::Test {
 protected:
  using State = engine::StatePtr;

  State host(std::vector<int64_t> shape, const std::vector<float>& values,
             const char* device = "") {
    const engine::Session::Lock lock(session);
    return session.make(session.store_host(shape, DType::F32, session.device_number(device),
                                           std::as_bytes(std::span(values))));
  }
  State binary(Op op, const State& a, const State& b) {
    const engine::Session::Lock lock(session);
    return session.make(session.graph().binary(op, a->node, b->node));
  }
  State add(const State& a, const State& b) { return binary(Op::Add, a, b); }
  State mul(const State& a, const State& b) { return binary(Op::Mul, a, b); }
  State constant(float value) {
    const engine::Session::Lock lock(session);
    return session.make(session.graph().constant(DType::F32, static_cast<double>(value)));
  }
  State with_list(Op op, const State& x, std::vector<int64_t> list) {
    const engine::Session::Lock lock(session);
    Graph& g = session.graph();
    return session.make(g.add(op, g[x->node].dtype, {x->node}, g.list(list)));
  }
  State sum(const State& x, std::vector<int64_t> axes) {
    axes.insert(axes.begin(), static_cast<int64_t>(Op::Add));
    return with_list(Op::Reduce, x, std::move(axes));
  }

  std::vector<float> values(const State& state) {
    std::vector<float> out;
    {
      const engine::Session::Lock lock(session);
      out.resize(static_cast<size_t>(element_count(session.shape(state->node))));
    }
    session.read(*state, std::as_writable_bytes(std::span(out)));
    return out;
  }
  /// The number of kernels that `work` launches.
  template <class Work>
  uint64_t kernels(Work work) {
    const uint64_t before = session.statistics().kernels_launched;
    work();
    return session.statistics().kernels_launched - before;
  }

  engine::Session& session = engine::Session::current();
};

}  // namespace plugrad::e2e
