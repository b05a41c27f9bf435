// Assigned state, random numbers, functions with custom gradients, views.
#include "jit/patterns/replay_case.h"

using namespace plugrad;

namespace {

ReplayCase rounded() {
  return {"a function with a derivative of its own",
          [] {
            const auto w = kept<Tensor>(Tensor::randn({20}).realize());
            w->requires_grad_();
            const auto opt = kept<optim::SGD>(Tensors{*w}, optim::SGDOptions{.lr = 0.1});
            const CustomFunction round{
                "round", [](FunctionContext&, const Tensors& x) { return Tensors{x[0].round()}; },
                [](const FunctionContext&, const Tensors& g) { return g; }};
            return [w, opt, round](const Tensors& in) {
              opt->zero_grad();
              const Tensor y = round({*w * in[0]})[0], z = round({*w + 1})[0];
              const Tensor loss = (y * z + z * *w).sum();
              loss.backward();
              opt->step();
              return Tensors{loss, w->clone()};
            };
          },
          rows({20})};
}

ReplayCase counted() {
  return {"a counter and a ring of memory",
          [] {
            const auto count = kept<Tensor>(Tensor::zeros({}, DType::I32).realize());
            const auto ring = kept<Tensor>(Tensor::zeros({4, 6}).realize());
            return [count, ring](const Tensors& in) {
              const Tensor at = (*count % 4).reshape({1, 1}).expand({1, 6});
              ring->assign(ring->scatter(0, at, in[0].unsqueeze(0)));
              count->assign(*count + 1);
              return Tensors{*count, ring->sum(0)};
            };
          },
          rows({6})};
}

// Enough nodes that the session renumbers its graph during calls, at a different point in each.
ReplayCase renumbered() {
  return {"a graph that is renumbered midway",
          [] {
            const auto w = kept<Tensor>(Tensor::uniform({90}, 0.5, 1.5).realize());
            w->requires_grad_();
            const auto opt = kept<optim::SGD>(Tensors{*w}, optim::SGDOptions{.lr = 1e-3});
            return [w, opt](const Tensors& in) {
              Tensors results;
              for (int part = 0; part < 4; ++part) {
                opt->zero_grad();
                Tensor x = in[0] * 0.1;
                for (int i = 0; i < 30; ++i) x = (x.cumsum(0) * 0.01 + *w * x.sin()).tanh() + x;
                const Tensor loss = (x * *w).sum();
                loss.backward();
                opt->step();
                results.push_back(loss);
              }
              results.push_back(w->clone());
              return results;
            };
          },
          rows({90})};
}

// One recording for every number of indices: gathers from a vocabulary, sorting, scans and
// scatters.
const Variable& length() {
  static const Variable variable("length", 1, 64);
  return variable;
}

ReplayCase vocabulary_of_variable_length() {
  return {
      "rows of a vocabulary at places of variable number",
      [] {
        const auto table = kept<nn::Embedding>(50257, 4);
        const auto opt = kept<optim::AdamW>(nn::parameters(*table));
        return [table, opt](const Tensors& in) {
          opt->zero_grad();
          const Tensor loss = ((*table)(in[0]) - 0.5).square().mean();
          loss.backward();
          opt->step();
          return Tensors{loss, table->weight.sum(1)};
        };
      },
      [](int call) { return Tensors{length().fit(places({4, 5 + 11 * call}, 50257, call), 1)}; }};
}

ReplayCase data_of_variable_length() {
  return function_case(
      "orders and totals of variable size",
      [](const Tensors& in) {
        const auto [values, at] = in[0].sort(1);
        return Tensors{values, in[0].cumsum(1), in[0].gather(1, at), in[0].topk(1, 1).first,
                       in[0].scatter(1, at, values)};
      },
      [](int call) { return Tensors{length().fit(numbers({4, 1 + 9 * call}, call), 1)}; });
}

std::vector<ReplayCase> structures() {
  const auto square = rows({6, 6});
  const auto inner = std::make_shared<Jit<Step>>(
      jit(Step([](const Tensors& in) { return Tensors{in[0].cumsum(0), in[0].sum()}; })));
  return {
      rounded(),
      counted(),
      renumbered(),
      vocabulary_of_variable_length(),
      data_of_variable_length(),
      function_case(
          "chosen by data",
          [](const Tensors& in) { return Tensors{where(in[0].sum() > 0, in[0] * 2, in[0].abs())}; },
          square),
      function_case(
          "views and joins",
          [](const Tensors& in) {
            return Tensors{cat({in[0].transpose(), in[0].flip({0})}, 1), stack(in[0].split(2))};
          },
          square),
      function_case(
          "random numbers",
          [](const Tensors& in) {
            return Tensors{in[0] + Tensor::randn({6, 6}), Tensor::randint({9}, 0, 100),
                           in[0].dropout(0.5)};
          },
          square),
      function_case(
          "realised midway",
          [](const Tensors& in) {
            const Tensor sum = in[0].cumsum(1).realize();
            return Tensors{sum * in[0], sum.max(1)};
          },
          square),
      function_case(
          "a jitted function within",
          [inner](const Tensors& in) { return (*inner)(Tensors{in[0] * 2}); }, square),
      function_case(
          "half precision",
          [](const Tensors& in) {
            return Tensors{in[0].cast(DType::F16).matmul(in[0].cast(DType::F16)),
                           in[0].cast(DType::BF16).cumsum(0)};
          },
          square),
      function_case(
          "attention with a mask of data",
          [](const Tensors& in) {
            const Tensor q = in[0].reshape({1, 6, 6});
            return Tensors{scaled_dot_product_attention(q, q * 0.5, q + 1, in[0] > -1)};
          },
          square),
      // A node of constants alone outlives a call in the graph.
      function_case(
          "results of constants",
          [](const Tensors& in) {
            const Tensor table = Tensor::arange(300, DType::F32);
            return Tensors{in[0].exp() + in[0].square(), table.sin().cumsum(0), in[0] * 2,
                           Tensor::ones({3, 100}).cumsum(1) * 2};
          },
          square),
      function_case(
          "no elements",
          [](const Tensors& in) {
            return Tensors{in[0].slice(0, Slice(0, 0)).cumsum(0),
                           in[0].slice(0, Slice(3, 3)).sum()};
          },
          square),
  };
}

INSTANTIATE_TEST_SUITE_P(Structures, Replays, testing::ValuesIn(structures()), name_of_case);

}  // namespace
