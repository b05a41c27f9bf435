// Functions with the user's own backward.
#include "plugrad/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/session.h"
#include "oracle/evaluator.h"
#include "tensor/handles.h"
#include "unit/custom/message.h"

namespace plugrad {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;
using Tensors = std::vector<Tensor>;
using Context = FunctionContext;
using test::message_of;

CustomFunction make(CustomFunction::Forward forward, CustomFunction::Backward backward,
                    std::string name = "mine") {
  return {std::move(name), std::move(forward), std::move(backward)};
}

// x³; its backward computes 3x² with tensor functions.
CustomFunction cube() {
  return make(
      [](Context&, const Tensors& x) { return Tensors{x[0] * x[0] * x[0]}; },
      [](const Context& c, const Tensors& g) { return Tensors{g[0] * 3 * c.inputs()[0].square()}; },
      "cube");
}

// The identity with ten times its gradient, so that every use of the gradient is visible.
CustomFunction tenfold() {
  return make([](Context&, const Tensors& x) { return x; },
              [](const Context&, const Tensors& g) { return Tensors{g[0] * 10}; }, "tenfold");
}

TEST(Function, its_backward_is_the_gradient_of_both_forms) {
  Tensor x = Tensor::from({2.f, -3.f});
  x.requires_grad_();
  tenfold()({x})[0].sum().backward();
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(10, 10));
  const Tensor y = Tensor::from({2.f, -3.f});
  const Tensor loss = (cube()({y * 2})[0] * Tensor::from({1.f, 5.f})).sum();
  EXPECT_FLOAT_EQ(loss.item<float>(), 64 - 5 * 216);
  // d (2y)³ w = 3 (2y)² 2 w
  EXPECT_THAT(
      gradient((cube()({y * 2})[0] * Tensor::from({1.f, 5.f})).sum(), {y})[0].to_vector<float>(),
      ElementsAre(FloatEq(96), FloatEq(1080)));
}

TEST(Function, derivatives_of_higher_order_use_backward_again) {
  const Tensor x = Tensor::from({2.f}).requires_grad_();
  const Tensor y = cube()({x})[0].sum();
  const Tensor first = gradient(y, {x})[0], second = gradient(first.sum(), {x})[0],
               third = gradient(second.sum(), {x})[0];
  EXPECT_FLOAT_EQ(first.item<float>(), 12);
  EXPECT_FLOAT_EQ(second.item<float>(), 12);
  EXPECT_FLOAT_EQ(third.item<float>(), 6);
}

TEST(Function, a_backward_made_of_the_output_is_differentiated_through_the_function) {
  const auto expo =
      make([](Context&, const Tensors& x) { return Tensors{x[0].exp()}; },
           [](const Context& c, const Tensors& g) { return Tensors{g[0] * c.outputs()[0]}; });
  const Tensor x = Tensor::from({0.5f}).requires_grad_();
  Tensor d = expo({x})[0];
  for (int order = 0; order < 3; ++order) d = gradient(d.sum(), {x})[0];
  EXPECT_THAT(d.item<float>(), FloatNear(1.6487213f, 1e-6f));
}

// Values and indices; the second float output is not always used.
CustomFunction split_sign() {
  return make(
      [](Context& c, const Tensors& in) {
        const Tensor& x = in[0];
        c.save(x > 0);
        return Tensors{x.relu(), (x > 0).cast(DType::I32), (-x).relu()};
      },
      [](const Context& c, const Tensors& g) {
        EXPECT_EQ(g.size(), 3u);
        EXPECT_TRUE(g[0].defined());
        EXPECT_FALSE(g[1].defined());
        EXPECT_TRUE(g[2].defined());
        EXPECT_EQ(c.outputs()[1].dtype(), DType::I32);
        EXPECT_EQ(c.outputs()[2].shape(), c.inputs()[0].shape());
        return Tensors{c.saved()[0].where(g[0], -g[2])};
      });
}

TEST(Function, several_outputs_share_one_backward) {
  const Tensor x = Tensor::from({2.f, -3.f}).requires_grad_();
  Tensors y = split_sign()({x});
  EXPECT_EQ(y[1].dtype(), DType::I32);
  EXPECT_THAT(gradient((y[0] * 5 + y[2] * 7).sum(), {x})[0].to_vector<float>(), ElementsAre(5, -7));
  EXPECT_THAT(gradient((y[0] * 5).sum(), {x})[0].to_vector<float>(), ElementsAre(5, 0));
  EXPECT_THAT(gradient(y[2].sum(), {x})[0].to_vector<float>(), ElementsAre(0, -1));
  // A later output feeds a call of the same function together with an earlier one.
  Tensors again = split_sign()({y[0] - y[2] * 2});
  EXPECT_THAT(gradient((again[0] + again[2]).sum(), {x})[0].to_vector<float>(), ElementsAre(1, -2));
  EXPECT_THAT(y[1].to_vector<int>(), ElementsAre(1, 0));
}

TEST(Function, outputs_that_were_dropped_are_there_for_backward) {
  const Tensor x = Tensor::from({2.f, -3.f}).requires_grad_();
  const Tensor kept = split_sign()({x})[2];
  engine::Session::current().collect();
  EXPECT_THAT(gradient(kept.sum(), {x})[0].to_vector<float>(), ElementsAre(0, -1));
}

TEST(Function, the_gradient_survives_realising_and_collecting) {
  const Tensor x = Tensor::from({2.f, -3.f}).requires_grad_();
  const Tensor rounded = make([](Context&, const Tensors& in) { return Tensors{in[0].round()}; },
                              [](const Context&, const Tensors& g) { return g; })({x * 1.7})[0];
  EXPECT_THAT(rounded.to_vector<float>(), ElementsAre(3, -5));
  engine::Session::current().collect();
  EXPECT_TRUE(rounded.is_realized());
  EXPECT_THAT(gradient((rounded * 2).sum(), {x})[0].to_vector<float>(),
              ElementsAre(FloatEq(3.4f), FloatEq(3.4f)));
}

// Also for plain views: the leaf below is not computed, but has a gradient.
TEST(Function, a_realised_view_of_a_leaf_still_leads_to_it) {
  Tensor w = Tensor::from({1.f, 2.f}) * 2;
  w.requires_grad_();
  const Tensor view = w.reshape({2, 1});
  view.realize();
  (view * 3).sum().backward();
  EXPECT_THAT(w.grad().to_vector<float>(), ElementsAre(3, 3));
}

TEST(Function, inputs_of_other_dtypes_have_no_gradient) {
  const auto take =
      make([](Context&, const Tensors& in) { return Tensors{in[0].gather(0, in[1])}; },
           [](const Context& c, const Tensors& g) {
             EXPECT_TRUE(c.needs_gradient(0));
             EXPECT_FALSE(c.needs_gradient(1));
             const Tensor hot = c.inputs()[1].one_hot(c.inputs()[0].size(0)).cast(DType::F32);
             return Tensors{(hot * g[0].unsqueeze(1)).sum(0), Tensor()};
           });
  const Tensor x = Tensor::from({1.f, 2.f, 3.f}).requires_grad_(), at = Tensor::from({2, 2, 0});
  const Tensor y = take({x, at})[0];
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, 3, 1));
  EXPECT_THAT(gradient(y.sum(), {x})[0].to_vector<float>(), ElementsAre(1, 0, 2));
}

TEST(Function, a_number_is_a_gradient_and_empty_tensors_have_one) {
  const auto one = make([](Context&, const Tensors& in) { return Tensors{in[0].abs()}; },
                        [](const Context&, const Tensors&) { return Tensors{1.0}; });
  const Tensor x = Tensor::from({1.f, -2.f}).requires_grad_();
  EXPECT_THAT(gradient(one({x})[0].sum(), {x})[0].to_vector<float>(), ElementsAre(1, 1));
  const Tensor none = Tensor::zeros({0, 3}).requires_grad_();
  EXPECT_EQ(gradient(cube()({none})[0].sum(), {none})[0].shape(), (Shape{0, 3}));
}

TEST(Function, forward_may_compute_on_the_host) {
  const auto host_exp = make(
      [](Context&, const Tensors& in) {
        std::vector<float> values = in[0].to_vector<float>();
        for (float& v : values) v = std::exp(v);
        return Tensors{Tensor::from(values)};
      },
      [](const Context& c, const Tensors& g) { return Tensors{g[0] * c.outputs()[0]}; });
  const Tensor x = Tensor::from({0.f, 1.f}).requires_grad_();
  const Tensor y = host_exp({x * 2})[0];
  EXPECT_TRUE(y.is_realized());
  EXPECT_THAT(gradient(y.realize().sum(), {x})[0].to_vector<float>(),
              ElementsAre(FloatEq(2), FloatEq(2 * std::exp(2.f))));
}

TEST(Function, adds_no_kernel) {
  const Tensor x = Tensor::rand({16}).realize();
  EXPECT_EQ(cube()({x + 1})[0].schedule().size(), 1u);
  EXPECT_EQ((tenfold()({x})[0] * 2).schedule().size(), 1u);
  EXPECT_EQ(tenfold()({x})[0].schedule().size(), 0u);
  EXPECT_EQ(oracle::evaluate(*tensor::state_of(tenfold()({x})[0])).size(), 16u);
}

TEST(Function, a_value_of_numbers_alone_is_one) {
  const auto two = make([](Context&, const Tensors&) { return Tensors{2.0, 3}; },
                        [](const Context&, const Tensors&) { return Tensors{}; });
  const Tensors y = two({});
  EXPECT_EQ(y[0].dtype(), DType::F32);
  EXPECT_EQ(y[0].item<float>(), 2);
  EXPECT_EQ(y[1].item<int>(), 3);
}

// ---- Errors in the user's code ----

TEST(FunctionErrors, of_calls_name_the_function) {
  EXPECT_THAT(message_of([] { cube()({Tensor()}); }), HasSubstr("[cube] input 0 is undefined"));
  const auto no_output = make([](Context&, const Tensors&) { return Tensors{}; },
                              [](const Context&, const Tensors& g) { return g; });
  EXPECT_THAT(message_of([&] { no_output({1.0}); }), HasSubstr("[mine] forward returned no"));
  const auto undefined = make([](Context&, const Tensors&) { return Tensors{Tensor()}; },
                              [](const Context&, const Tensors& g) { return g; });
  EXPECT_THAT(message_of([&] { undefined({1.0}); }), HasSubstr("[mine] output 0 is undefined"));
  EXPECT_THAT(message_of([] { CustomFunction{"empty", {}, {}}({1.0}); }), HasSubstr("[empty] "));
}

TEST(FunctionErrors, of_gradients_name_the_function_and_both_shapes) {
  const Tensor x = Tensor::ones({2, 3}).requires_grad_(), i = Tensor::arange(2);
  const auto returning = [&](Tensors gradients) {
    const auto f = make([](Context&, const Tensors& in) { return Tensors{in[0] * 2}; },
                        [=](const Context&, const Tensors&) { return gradients; });
    return message_of([&] { gradient(f({x, i})[0].sum(), {x}); });
  };
  EXPECT_THAT(returning({}), HasSubstr("[mine] backward returned 0 gradients for 2 inputs"));
  EXPECT_THAT(returning({Tensor::ones({3, 2}), Tensor()}),
              HasSubstr("f32 (3, 2) as the gradient of input 0, which is f32 (2, 3)"));
  EXPECT_THAT(returning({Tensor::ones({2, 3}, DType::F64), Tensor()}), HasSubstr("f64 (2, 3)"));
  EXPECT_THAT(returning({Tensor::ones({2, 3}), Tensor::ones({2})}),
              HasSubstr("a gradient for input 1, which is i32"));
}

TEST(FunctionErrors, what_backward_throws_passes_through_and_changes_nothing) {
  Tensor x = Tensor::from({1.f, 2.f});
  x.requires_grad_();
  (x * 3).sum().backward();
  bool fails = true;
  const auto f = make([](Context&, const Tensors& in) { return in; },
                      [&](const Context&, const Tensors& g) {
                        if (fails) throw std::logic_error("mine");
                        return g;
                      });
  const Tensor loss = (f({x})[0] + x).sum();
  EXPECT_THROW(loss.backward(), std::logic_error);
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(3, 3));
  fails = false;
  loss.backward();
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(5, 5));
}

// ---- Lifetimes ----

TEST(FunctionLives, a_loop_of_many_steps_keeps_nothing) {
  auto& session = engine::Session::current();
  Tensor w = Tensor::from({1.f, 2.f});
  w.requires_grad_();
  const auto holder = std::make_shared<int>(0);
  for (int step = 0; step < 10000; ++step) {
    w.zero_grad();
    const auto f = make(
        [](Context& c, const Tensors& in) {
          c.save(in[0] * 2);
          return Tensors{in[0].square()};
        },
        [holder](const Context& c, const Tensors& g) { return Tensors{g[0] * c.saved()[0]}; });
    (f({w})[0]).sum().backward();
    w.assign(w - w.grad() * 1e-5);
    if (step % 100 == 0) w.realize();
  }
  w.realize();
  w.zero_grad();
  session.collect();
  EXPECT_EQ(session.functions().size(), 0u);
  EXPECT_EQ(holder.use_count(), 1);
  EXPECT_LT(session.statistics().graph_nodes, 100u);
  EXPECT_THAT(w.to_vector<float>()[0], FloatNear(std::exp(-0.2f), 1e-3f));
}

// A backward may hold another backward: one collection frees the whole chain.
TEST(FunctionLives, a_chain_of_captures_goes_at_once) {
  auto& session = engine::Session::current();
  session.collect();
  const size_t before = session.functions().size(), states = session.live_states();
  {
    Tensor x = Tensor::from({1.f}).requires_grad_();
    for (int i = 0; i < 20; ++i)
      x = make([](Context&, const Tensors& in) { return Tensors{in[0] * 2}; },
               [x](const Context&, const Tensors& g) { return Tensors{g[0] * x}; })({x})[0];
    EXPECT_EQ(session.functions().size(), before + 20);
  }
  session.collect();
  EXPECT_EQ(session.functions().size(), before);
  EXPECT_EQ(session.live_states(), states);
}

}  // namespace
}  // namespace plugrad
