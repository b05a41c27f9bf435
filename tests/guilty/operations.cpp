// operations NAME: a small program that uses one operation, for the tests that lead from a broken
// plugin to the kernel and operation at fault.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "plugrad/plugrad.h"
#include "plugrad/sdk/ir_builder.h"

using namespace plugrad;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor floats(std::vector<float> values) {
  return Tensor::from(values);
}
Tensor ints(std::vector<int32_t> values) {
  return Tensor::from(values);
}
Tensor ramp(int64_t size) {
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(0.37f * static_cast<float>(i % 101) - 11.3f);
  return Tensor::from(values);
}

std::vector<Tensor> run_ir(std::vector<std::byte> block, const std::string& name,
                           const std::vector<Tensor>& inputs, const KernelOutput& output) {
  return UserKernel{.name = name, .ir = std::move(block)}(inputs, {output});
}

// out[g0 * 5 + g1] = g0 + in[0] on 3 x 5 groups; room for 5 x 5.
Tensor two_axes() {
  sdk::IrBuilder b("two_axes");
  b.set_groups(3, 5);
  const auto out = b.buffer(PGR_DTYPE_I32, 25, PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS);
  const auto in = b.buffer(PGR_DTYPE_I32, 1, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS);
  const auto five = b.constant_int(PGR_DTYPE_I32, 5), zero = b.constant_int(PGR_DTYPE_I32, 0);
  const auto row = b.group_id(0);
  const auto at = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {row, five}), b.group_id(1)});
  b.store(out, at, b.alu(PGR_OP_ADD, {row, b.load(in, zero)}));
  return run_ir(b.finish(), "two_axes", {ints({7})}, {{25}, DType::I32})[0];
}

// out[g] = in[g] + 1 on 4099 groups.
Tensor many_groups() {
  sdk::IrBuilder b("many_groups");
  b.set_groups(4099);
  const auto out = b.buffer(PGR_DTYPE_F32, 4099, PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS);
  const auto in = b.buffer(PGR_DTYPE_F32, 4099, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS);
  const auto i = b.group_id(0);
  b.store(out, i, b.alu(PGR_OP_ADD, {b.load(in, i), b.constant_float(PGR_DTYPE_F32, 1)}));
  return run_ir(b.finish(), "many_groups", {ramp(4099)}, {{4099}, DType::F32})[0];
}

// Reverses 32 values through local memory.
Tensor mirror() {
  sdk::IrBuilder b("mirror");
  b.set_local(32);
  const auto out = b.buffer(PGR_DTYPE_F32, 32, PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS);
  const auto in = b.buffer(PGR_DTYPE_F32, 32, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS);
  const auto tile = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_F32, 32);
  const auto i = b.local_id(0);
  b.store(tile, i, b.load(in, i));
  b.barrier();
  const auto last = b.constant_int(PGR_DTYPE_I32, 31);
  b.store(out, i, b.load(tile, b.alu(PGR_OP_SUB, {last, i})));
  return run_ir(b.finish(), "mirror", {ramp(32)}, {{32}, DType::F32})[0];
}

// Copies 64 values through local memory by asynchronous copies.
Tensor asynchronous() {
  sdk::IrBuilder b("asynchronous");
  b.set_local(16);
  const auto out = b.buffer(PGR_DTYPE_F32, 64, PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS);
  const auto in = b.buffer(PGR_DTYPE_F32, 64, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS, 16);
  const auto tile = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_F32, 64, 1, 16);
  const auto four = b.constant_int(PGR_DTYPE_I32, 4);
  const auto at = b.alu(PGR_OP_MUL, {b.local_id(0), four});
  b.async_copy(tile, at, in, at, 4);
  b.async_commit();
  b.async_wait(0);
  b.barrier();
  for (int lane = 0; lane < 4; ++lane) {
    const auto index = b.alu(PGR_OP_ADD, {at, b.constant_int(PGR_DTYPE_I32, lane)});
    b.store(out, index, b.load(tile, index));
  }
  return run_ir(b.finish(), "asynchronous", {ramp(64)}, {{64}, DType::F32})[0];
}

// Adds vectors of four lanes.
Tensor lanes() {
  sdk::IrBuilder b("lanes");
  b.set_groups(4);
  const auto out = b.buffer(PGR_DTYPE_F32, 16, PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS, 16);
  const auto in = b.buffer(PGR_DTYPE_F32, 16, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS, 16);
  const auto at = b.alu(PGR_OP_MUL, {b.group_id(0), b.constant_int(PGR_DTYPE_I32, 4)});
  const auto x = b.load(in, at, 4);
  b.store(out, at, b.alu(PGR_OP_ADD, {x, b.splat(b.constant_float(PGR_DTYPE_F32, 3), 4)}));
  return run_ir(b.finish(), "lanes", {ramp(16)}, {{16}, DType::F32})[0];
}

// Two stores of a group, the second of which is closed for odd groups.
Tensor gates() {
  sdk::IrBuilder b("gates");
  b.set_groups(16);
  const auto out = b.buffer(PGR_DTYPE_I32, 16, PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS);
  const auto in = b.buffer(PGR_DTYPE_I32, 16, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS);
  const auto i = b.group_id(0);
  const auto one = b.constant_int(PGR_DTYPE_I32, 1);
  b.store(out, i, b.load(in, i));
  const auto is_odd = b.alu(PGR_OP_CMPEQ, {b.alu(PGR_OP_AND, {i, one}), one});
  b.store_gated(out, i, one, is_odd);
  return run_ir(b.finish(), "gates", {Tensor::zeros({16}, DType::I32)}, {{16}, DType::I32})[0];
}

using Program = std::function<std::vector<Tensor>()>;

const std::map<std::string, Program>& programs() {
  static const std::map<std::string, Program> all = {
      {"groups", [] { return std::vector{(ramp(4096) * 2.0 + 1.0).reshape({64, 64}).sum(1)}; }},
      {"large", [] { return std::vector{ramp(4099) + 1.0}; }},
      {"subtract",
       [] { return std::vector{ramp(64) - floats(std::vector<float>(64, 0.7f)) * 3.0}; }},
      {"many_groups", [] { return std::vector{many_groups()}; }},
      {"offsets",
       [] {
         const Tensor a = ramp(400).realize(), b = (ramp(400) * 0.5).realize();
         const Tensor weights = (ramp(4096) * 0.001).reshape({64, 64}).realize();
         Tensor h = ramp(64);
         for (int64_t i = 0; i < 9; ++i)
           h = matmul(
               weights,
               (h + a.shrink({{3 * i, 3 * i + 64}}) + b.shrink({{i * i, i * i + 64}})).relu());
         return std::vector{h};
       }},
      {"two_axes", [] { return std::vector{two_axes()}; }},
      {"mirror", [] { return std::vector{mirror()}; }},
      {"asynchronous", [] { return std::vector{asynchronous()}; }},
      {"lanes", [] { return std::vector{lanes()}; }},
      {"gates", [] { return std::vector{gates()}; }},
      {"maximum",
       [] {
         return std::vector{floats({kNan, 1, 2, kNan}).maximum(floats({1, kNan, 3, kNan})) + 1.0};
       }},
      {"cast_bf16", [] { return std::vector{(ramp(64) * 1.7).cast(DType::BF16)}; }},
      {"trunc_div",
       [] { return std::vector{(ints({-8, 8, -10, 5}) + 1).trunc_div(ints({2, -2, 4, 3}))}; }},
      {"shift", [] { return std::vector{ints({1, 2, 3, 4}) << ints({31, 32, 33, 1})}; }},
      {"negate", [] { return std::vector{-floats({0, 1, -2, 0})}; }},
      {"truncate", [] { return std::vector{floats({-0.5f, 0.5f, 1.5f, -2.5f}).trunc()}; }},
      {"tiny",
       [] {
         return std::vector{floats({1e-30f, 2e-30f, 3e-20f, 1}) *
                            floats({1e-10f, 1e-12f, 1e-20f, 1})};
       }},
      {"multiply_add", [] { return std::vector{ramp(64) * ramp(64) + ramp(64) * 0.333}; }},
      {"zero_product",
       [] {
         sdk::IrBuilder b("zero_product");
         b.set_groups(4);
         const auto out = b.buffer(PGR_DTYPE_F32, 4, PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS);
         const auto in = b.buffer(PGR_DTYPE_F32, 4, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS);
         const auto i = b.group_id(0);
         const auto zero = b.constant_float(PGR_DTYPE_F32, 0);
         b.store(out, i, b.alu(PGR_OP_MUL, {b.load(in, i), zero}));
         return run_ir(b.finish(), "zero_product", {floats({kNan, kInfinity, 1, -1})},
                       {{4}, DType::F32});
       }},
      {"repeat",  // for two seconds; no value is the one of an earlier launch
       [] {
         Tensor x = ramp(4096);
         const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
         while (std::chrono::steady_clock::now() < end) x = (x + 1.0).realize();
         return std::vector{x};
       }},
      {"two_kernels",
       [] {
         const Tensor a = (ramp(64) + 1.0).realize(), b = (ramp(64) + 2.0).realize();
         return std::vector{a, b, (ramp(64) - 3.0).realize(), (ramp(64) - 4.0).realize()};
       }},
  };
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  const auto at = count == 2 ? programs().find(arguments[1]) : programs().end();
  if (at == programs().end()) return std::fprintf(stderr, "usage: operations NAME\n"), 2;
  try {
    for (const Tensor& result : at->second()) result.realize();
    plugrad::shutdown();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
