// User-written kernels, in each of the three forms.
#include "plugrad/user_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session.h"
#include "oracle/evaluator.h"
#include "plugrad/sdk/ir_builder.h"
#include "tensor/handles.h"
#include "unit/custom/message.h"

namespace plugrad {
namespace {

using ir::UOp;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::vector<Tensor>;

bool on_cpu() {
  return Tensor(1.0).device() == "CPU";
}

// out[i] = 2 in[i] + 1
UserKernel as_ast(int64_t n) {
  const UOp i = UOp::range(n, 0);
  const UOp out = UOp::param(0, DType::F32, n, true), in = UOp::param(1, DType::F32, n, false);
  return {.name = "twice_plus_one", .ast = UOp::sink({out.store(i, in.load(i) * 2 + 1)})};
}

UserKernel as_ir(int64_t n) {
  sdk::IrBuilder b("twice_plus_one");
  b.set_groups(static_cast<uint64_t>(n));
  const auto out = b.buffer(PGR_DTYPE_F32, static_cast<uint64_t>(n), PGR_PARAM_WRITE);
  const auto in = b.buffer(PGR_DTYPE_F32, static_cast<uint64_t>(n), PGR_PARAM_READ);
  const auto i = b.group_id(0);
  const auto doubled = b.alu(PGR_OP_MUL, {b.load(in, i), b.constant_float(PGR_DTYPE_F32, 2)});
  b.store(out, i, b.alu(PGR_OP_ADD, {doubled, b.constant_float(PGR_DTYPE_F32, 1)}));
  return {.name = "twice_plus_one", .ir = b.finish()};
}

constexpr char kSource[] = R"(
void twice_plus_one(void *const *buffers, const unsigned long *scalars,
                    unsigned long begin, unsigned long end) {
  float *out = buffers[0];
  const float *in = buffers[1];
  for (unsigned long group = begin; group < end; ++group) out[group] = 2 * in[group] + 1;
})";

UserKernel as_source(int64_t n) {
  return {.name = "twice_plus_one",
          .sources = {{"CPU", kSource}},
          .groups = {static_cast<uint64_t>(n), 1, 1}};
}

std::vector<UserKernel> forms(int64_t n) {
  std::vector<UserKernel> all = {as_ast(n), as_ir(n)};
  if (on_cpu()) all.push_back(as_source(n));
  return all;
}

TEST(UserKernel, each_form_computes_and_is_one_kernel) {
  const Tensor x = Tensor::from({1.f, -2.f, 0.5f, 8.f}).realize();
  for (const UserKernel& kernel : forms(4)) {
    const Tensor y = kernel({x}, {{{2, 2}}})[0];
    EXPECT_EQ(y.shape(), (Shape{2, 2}));
    const auto kernels = y.schedule();
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].name(), "twice_plus_one");
    EXPECT_EQ(kernels[0].source().empty(), !on_cpu());
    EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, -3, 2, 17));
    EXPECT_EQ(y.kernelize().size(), 0u);
  }
}

TEST(UserKernel, computed_inputs_are_stored_and_views_made_contiguous) {
  const Tensor x = Tensor::from({{1.f, 2.f}, {3.f, 4.f}}).realize();
  for (const UserKernel& kernel : forms(4)) {
    const Tensor of_sum = kernel({x + 1}, {{{4}}})[0] * 10;
    EXPECT_EQ(of_sum.schedule().size(), 3u);  // x + 1, the kernel, * 10
    EXPECT_THAT(of_sum.to_vector<float>(), ElementsAre(50, 70, 90, 110));
    const Tensor of_view = kernel({x.transpose()}, {{{2, 2}}})[0];
    EXPECT_EQ(of_view.schedule().size(), 2u);
    EXPECT_THAT(of_view.to_vector<float>(), ElementsAre(3, 7, 5, 9));
    EXPECT_EQ(kernel({x.reshape({4})}, {{{4}}})[0].schedule().size(), 1u);
    EXPECT_THAT(kernel({Tensor::full({4}, 3.f)}, {{{4}}})[0].to_vector<float>(),
                ElementsAre(7, 7, 7, 7));
    EXPECT_THAT(kernel({kernel({x}, {{{4}}})[0]}, {{{4}}})[0].to_vector<float>(),
                ElementsAre(7, 11, 15, 19));
    EXPECT_THAT(kernel({Tensor::arange(4, DType::F32)}, {{{4}}})[0].sum().item<float>(), 16);
  }
}

TEST(UserKernel, equal_calls_are_one_node_and_their_plans_are_found_again) {
  auto& session = engine::Session::current();
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f}).realize();
  const Tensor first = as_ast(4)({x}, {{{4}}})[0], second = as_ast(4)({x}, {{{4}}})[0];
  EXPECT_EQ(first.uop(), second.uop());
  first.realize();
  EXPECT_TRUE(second.is_realized());
  const uint64_t plans = session.statistics().plans_made;
  const size_t kernels = session.user_kernels().size();
  for (int step = 0; step < 100; ++step)
    as_ast(4)({Tensor::from({1.f, 2.f, 3.f, float(step)})}, {{{4}}})[0].realize();
  EXPECT_LE(session.statistics().plans_made, plans + 1);
  EXPECT_EQ(session.user_kernels().size(), kernels);
}

// Sums and differences of two inputs; integers and their signs.
UserKernel two_outputs(int64_t n) {
  const UOp i = UOp::range(n, 0);
  const auto at = [&](uint32_t slot) { return UOp::param(slot, DType::I32, n, slot < 2); };
  const UOp a = at(2).load(i), b = at(3).load(i);
  return {.name = "sum_and_difference",
          .ast = UOp::sink({at(0).store(i, a + b), at(1).store(i, a - b)})};
}

TEST(UserKernel, several_outputs_come_of_one_launch) {
  const Tensor a = Tensor::from({5, 6}).realize(), b = Tensor::from({1, 10}).realize();
  const std::vector<KernelOutput> outputs = {{{2}, DType::I32}, {{2, 1}, DType::I32}};
  const Tensors both = two_outputs(2)({a, b}, outputs);
  const Tensor all = both[0] * 100 + both[1].reshape({2});
  EXPECT_EQ(all.schedule().size(), 2u);
  EXPECT_THAT(all.to_vector<int>(), ElementsAre(604, 1596));
  EXPECT_THAT(two_outputs(2)({b, a}, outputs)[1].to_vector<int>(), ElementsAre(-4, 4));
  auto& session = engine::Session::current();
  const Tensors again = two_outputs(2)({a + 1, b}, outputs);
  session.reset_statistics();
  Tensor::realize(again);
  EXPECT_EQ(session.statistics().kernels_launched, 2u);
  EXPECT_THAT(again[0].to_vector<int>(), ElementsAre(7, 17));
}

TEST(UserKernel, a_reduction_as_AST_takes_the_optimiser_s_way) {
  const int64_t rows = 8, width = 64;
  const UOp i = UOp::range(rows, 0), k = UOp::range(width, 1, true);
  const UOp out = UOp::param(0, DType::F32, rows, true),
            in = UOp::param(1, DType::F32, rows * width, false);
  const UOp value = in.load(i * width + k);
  const UserKernel squares{.name = "sum_of_squares",
                           .ast = UOp::sink({out.store(i, (value * value).reduce("add", {k}))})};
  const Tensor x = Tensor::arange(rows * width, DType::F32).realize() * 0.01;
  const auto sums = squares({x}, {{{rows}}})[0].to_vector<float>();
  const auto expected = x.square().reshape({rows, width}).sum(1).to_vector<float>();
  for (size_t r = 0; r < sums.size(); ++r) EXPECT_NEAR(sums[r], expected[r], 1e-4f * expected[r]);
}

TEST(UserKernel, its_gradient_is_that_given) {
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f}).requires_grad_();
  for (UserKernel kernel : forms(4)) {
    const char* advice =
        "no gradient flows through the kernel twice_plus_one, which the loss depends on: give the "
        "UserKernel a `backward`";
    EXPECT_THAT(message_of([&] { gradient((kernel({x * 2}, {{{4}}})[0] + 1).sum(), {x}); }),
                HasSubstr(advice));
    EXPECT_THAT(message_of([&] { kernel({x}, {{{4}}})[0].sum().backward(); }), HasSubstr(advice));
    kernel.backward = [](const FunctionContext& c, const Tensors& g) {
      EXPECT_EQ(c.inputs()[0].shape(), (Shape{4}));
      return Tensors{g[0] * 2};
    };
    const Tensor loss = (kernel({x * 3}, {{{4}}})[0] * Tensor::from({1.f, 0.f, 1.f, 5.f})).sum();
    EXPECT_THAT(gradient(loss, {x})[0].to_vector<float>(), ElementsAre(6, 0, 6, 30));
    EXPECT_THAT(message_of([&] { gradient(kernel({x}, {{{4}}})[0].detach().sum(), {x}); }),
                HasSubstr("does not depend on target 0"))
        << "the kernel has a gradient";
  }
}

TEST(UserKernel, empty_arrays_and_kernels_without_inputs) {
  EXPECT_EQ(as_ast(0)({Tensor::zeros({0})}, {{{0}}})[0].to_vector<float>().size(), 0u);
  const UOp i = UOp::range(3, 0);
  const UserKernel squares{
      .name = "squares",
      .ast = UOp::sink({UOp::param(0, DType::I32, 3, true).store(i, (i * i).cast(DType::I32))})};
  EXPECT_THAT(squares({}, {{{3}, DType::I32}})[0].to_vector<int>(), ElementsAre(0, 1, 4));
}

TEST(UserKernel, runs_where_its_inputs_are) {
  for (const char* device : {"REFERENCE", "CPU"}) {
    const Tensor x = Tensor::from({1.f, 2.f}, device).realize();
    const Tensor y = as_ast(2)({x}, {{{2}}})[0];
    EXPECT_EQ(y.device(), device);
    EXPECT_THAT((y.to(on_cpu() ? "REFERENCE" : "CPU") * 2).to_vector<float>(), ElementsAre(6, 10));
  }
  const Tensor here = Tensor::from({1}, "CPU"), there = Tensor::from({1}, "REFERENCE");
  EXPECT_THAT(
      message_of([&] { two_outputs(1)({here, there}, {{{1}, DType::I32}, {{1}, DType::I32}}); }),
      HasSubstr("[sum_and_difference] tensors are on"));
}

TEST(UserKernel, the_evaluator_says_that_it_does_not_know_it) {
  const Tensor y = as_ast(4)({Tensor::zeros({4})}, {{{4}}})[0];
  EXPECT_THAT(message_of([&] { oracle::evaluate(*tensor::state_of(y)); }, ErrorKind::Unsupported),
              HasSubstr("a user's kernel is not evaluated"));
}

// ---- Random programs: user kernels among other ops, compared with the same ops alone ----

// A program over 4 x 4 integers; if `alone`, tensor functions replace the user kernel.
class RandomProgram {
 public:
  RandomProgram(uint32_t seed, bool alone) : seed_(seed), alone_(alone) {
    for (int k = 0; k < 3; ++k) {
      std::vector<int> values(16);
      for (int& v : values) v = static_cast<int>(next(9)) - 4;
      made_.push_back(Tensor::from(values, {4, 4}).realize());
    }
    for (int step = 0; step < 14; ++step) made_.push_back(grown());
  }
  const Tensors& results() const { return made_; }

 private:
  uint32_t next(uint32_t below) {
    seed_ = seed_ * 1664525u + 1013904223u;
    return (seed_ >> 8) % below;
  }
  const Tensor& any() { return made_[next(static_cast<uint32_t>(made_.size()))]; }

  Tensor grown() {
    const Tensor a = any(), b = any();
    switch (next(8)) {
      case 0:
        return a + b;
      case 1:
        return a.transpose();
      case 2:
        return a.sum(0, true, DType::I32) - b;
      case 3:
        return a.shrink({{1, 4}, {0, 4}}).pad({{0, 1}, {0, 0}}) * 2;
      case 4:
        return a.flip({1}).maximum(b);
      case 5:
        return kernels(a.sum(1, true, DType::I32).expand({4, 4}), b)[next(2)];
      case 6:
        return kernels(a, Tensor::full({4, 4}, static_cast<int>(next(5))))[next(2)];
      default: {
        const Tensors both = kernels(a, b);
        return both[0] - both[1].reshape({4, 4}).transpose();
      }
    }
  }

  // Sum and difference.
  Tensors kernels(const Tensor& a, const Tensor& b) const {
    if (alone_) return {a + b, a - b};
    return two_outputs(16)({a, b}, {{{4, 4}, DType::I32}, {{4, 4}, DType::I32}});
  }

  uint32_t seed_;
  const bool alone_;
  Tensors made_;
};

TEST(UserKernel, in_random_programs_computes_what_ops_alone_do) {
  for (uint32_t seed = 0; seed < (on_cpu() ? 40u : 150u); ++seed) {
    const RandomProgram with(seed, false), without(seed, true);
    const size_t first = seed % 2 == 0 ? with.results().size() - 1 : 8;  // one result, or many
    Tensor::realize(std::span(with.results()).subspan(first));
    for (size_t i = 0; i < with.results().size(); ++i)
      ASSERT_EQ(with.results()[i].to_vector<int>(), without.results()[i].to_vector<int>())
          << "seed " << seed << ", result " << i;
  }
}

// ---- Bad input ----

std::string refused(const UserKernel& kernel, const Tensors& inputs,
                    const std::vector<KernelOutput>& outputs) {
  return message_of([&] { kernel(inputs, outputs); });
}

TEST(UserKernelErrors, of_calls) {
  const Tensor x = Tensor::zeros({4});
  EXPECT_THAT(refused({.name = "two words", .ast = as_ast(4).ast}, {x}, {{{4}}}),
              HasSubstr("\"two words\" is no C identifier"));
  EXPECT_THAT(refused({.name = "k"}, {x}, {{{4}}}), HasSubstr("[k] the kernel has no source"));
  EXPECT_THAT(refused(as_ast(4), {x}, {}), HasSubstr("has no outputs"));
  EXPECT_THAT(refused(as_ast(4), {Tensor()}, {{{4}}}), HasSubstr("input 0 is undefined"));
  EXPECT_THAT(refused(as_ast(4), {x}, {{{4}, DType::Void}}), HasSubstr("which is not stored"));
  EXPECT_THAT(refused(as_ast(4), {x}, {{{-4}}}), HasSubstr("an output of shape (-4,)"));
}

// One group, whatever the sizes, would leave the rest of the outputs as it was.
TEST(UserKernelErrors, of_source_without_groups) {
  const Tensor x = Tensor::zeros({4});
  UserKernel kernel = as_source(4);
  kernel.groups = {};
  EXPECT_THAT(refused(kernel, {x}, {{{4}}}),
              HasSubstr("[twice_plus_one] `groups` is missing: give the number of workgroups"));
  kernel.groups = {4};
  EXPECT_THAT(refused(kernel, {x}, {{{4}}}), HasSubstr("along axis 1 are 0"));
}

TEST(UserKernelErrors, of_ASTs) {
  const Tensor x = Tensor::zeros({4});
  EXPECT_THAT(refused(as_ast(4), {x.cast(DType::I32)}, {{{4}}}),
              HasSubstr("buffer 1 of the AST is 4 f32 to read, the call's is 4 i32 to read"));
  EXPECT_THAT(refused(as_ast(4), {}, {{{4}}}), HasSubstr("takes buffer 1, the call has 1"));
  EXPECT_THAT(refused(as_ast(4), {x}, {{{5}}}), HasSubstr("buffer 0 of the AST is 4 f32"));
  const UOp i = UOp::range(5, 0), out = UOp::param(0, DType::F32, 4, true);
  EXPECT_THAT(refused({.name = "k", .ast = UOp::sink({out.store(i, 1.0)})}, {}, {{{4}}}),
              HasSubstr("reaches elements 0 to 4 of a buffer of 4"));
  EXPECT_THAT(refused({.name = "k", .ast = x.uop()}, {}, {{{4}}}), HasSubstr("[k] "));
  EXPECT_THAT(refused({.name = "k", .ast = UOp::sink({})}, {}, {{{4}}}),
              HasSubstr("stores nothing into output 0"));
  const UOp k = UOp::range(4, 0, true);
  EXPECT_THAT(refused({.name = "k", .ast = UOp::sink({out.store(k, 1.0)})}, {}, {{{4}}}),
              HasSubstr("open at a store"));
}

TEST(UserKernelErrors, of_blocks) {
  const Tensor x = Tensor::zeros({4});
  EXPECT_THAT(refused({.name = "k", .ir = {std::byte{1}}}, {x}, {{{4}}}), HasSubstr("1 bytes"));
  UserKernel kernel = as_ir(4);
  kernel.name = "other";
  EXPECT_THAT(refused(kernel, {x}, {{{4}}}), HasSubstr("called twice_plus_one"));
  EXPECT_THAT(refused(as_ir(4), {x, x}, {{{4}}}), HasSubstr("takes 2 buffers, the call has 3"));
  EXPECT_THAT(refused(as_ir(4), {Tensor::zeros({5})}, {{{4}}}), HasSubstr("buffer 1 of the"));
  kernel = as_ir(4);
  kernel.ir.resize(kernel.ir.size() - 8);
  EXPECT_THAT(refused(kernel, {x}, {{{4}}}), HasSubstr("no kernel IR block"));
}

TEST(UserKernelErrors, of_sources_come_when_it_runs) {
  const Tensor x = Tensor::zeros({4}).contiguous().realize();
  UserKernel kernel = as_source(4);
  if (!on_cpu()) {
    EXPECT_THAT(message_of([&] { kernel({x}, {{{4}}})[0].realize(); }),
                HasSubstr("[twice_plus_one] the kernel runs on REFERENCE:0, for which there is no "
                          "source (given for: CPU)"));
    kernel.sources = {{"reference", kSource}};
    EXPECT_THAT(message_of([&] { kernel({x}, {{{4}}})[0].realize(); }),
                HasSubstr("REFERENCE:0 compiles kernel IR, not source text"));
    return;
  }
  kernel.sources = {{"cuda", kSource}};
  EXPECT_THAT(message_of([&] { kernel({x}, {{{4}}})[0].realize(); }),
              HasSubstr("(given for: CUDA)"));
  kernel.sources = {{"cpu", "void twice_plus_one(void) { return nonsense; }"}};
  try {
    kernel({x}, {{{4}}})[0].realize();
    ADD_FAILURE() << "it compiled";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("twice_plus_one"));
    EXPECT_THAT(error.log(), HasSubstr("nonsense"));
  }
  kernel.sources = {{"CPU", "void another(void) {}"}};
  EXPECT_THAT(message_of([&] { kernel({x}, {{{4}}})[0].realize(); }, ErrorKind::Device),
              HasSubstr("no kernel \"twice_plus_one\""));
  EXPECT_THAT(as_source(4)({x}, {{{4}}})[0].to_vector<float>(), ElementsAre(1, 1, 1, 1));
}

}  // namespace
}  // namespace plugrad
