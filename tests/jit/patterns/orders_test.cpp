// Sorting, scans, and reads and writes at data-dependent indices; and gradients through them.
#include "jit/patterns/replay_case.h"

using namespace plugrad;

namespace {

std::vector<ReplayCase> orders() {
  const auto line = rows({300}), table = rows({4, 300});
  return {
      function_case(
          "sorted by argsort",
          [](const Tensors& in) { return Tensors{in[0].index_select(0, in[0].argsort())}; }, line),
      function_case(
          "permuted",
          [](const Tensors& in) { return Tensors{in[0].index_select(0, Tensor::randperm(300))}; },
          line),
      function_case(
          "sorted rows",
          [](const Tensors& in) {
            const auto [values, at] = in[0].sort(1, true);
            return Tensors{values, at};
          },
          table),
      function_case(
          "ranked", [](const Tensors& in) { return Tensors{in[0].argsort(0).argsort(0)}; }, line),
      function_case(
          "top of a row",
          [](const Tensors& in) {
            const auto [values, at] = in[0].topk(5);
            return Tensors{values, at};
          },
          rows({2, 3000})),
      function_case(
          "nucleus sampling",
          [](const Tensors& in) {
            const auto [sorted, at] = in[0].softmax(-1).sort(-1, true);
            const Tensor kept_part = sorted * (sorted.cumsum(-1) - sorted < 0.9);
            return Tensors{at.gather(-1, kept_part.multinomial(1))};
          },
          table),
  };
}

std::vector<ReplayCase> totals() {
  const auto table = rows({4, 300});
  return {
      function_case(
          "running totals",
          [](const Tensors& in) {
            return Tensors{in[0].cumsum(1), in[0].cumsum(0), in[0].cummax(1).second};
          },
          table),
      function_case(
          "running totals of integers",
          [](const Tensors& in) {
            return Tensors{(in[0] * 10).cast(DType::I32).cumsum(1), (in[0] > 0).cumsum(1)};
          },
          table),
      function_case(
          "discounted rewards",
          [](const Tensors& in) {
            const Tensor weight = Tensor::full({300}, 0.99).cumprod(0);
            return Tensors{((in[0] * weight).flip({1}).cumsum(1).flip({1})) / weight};
          },
          table),
  };
}

std::vector<ReplayCase> writes() {
  return {
      function_case(
          "scattered sum",
          [](const Tensors& in) {
            return Tensors{Tensor::zeros({500}).scatter(0, in[1], in[0], Combine::Sum)};
          },
          [](int call) { return Tensors{numbers({300}, call), places({300}, 500, call)}; }),
      function_case(
          "scattered last",
          [](const Tensors& in) { return Tensors{in[0].flip({0}).scatter(0, in[1], in[0])}; },
          [](int call) { return Tensors{numbers({300}, call), places({300}, 300, call)}; }),
      function_case(
          "histogram",
          [](const Tensors& in) {
            return Tensors{Tensor::zeros({1000}, DType::I32).scatter(0, in[0], 1, Combine::Sum)};
          },
          [](int call) { return Tensors{places({700}, 1000, call)}; }),
  };
}

std::vector<ReplayCase> reads() {
  const auto line = rows({300});
  return {
      function_case(
          "compacted",
          [](const Tensors& in) {
            return Tensors{in[0].masked_select(in[0] > 0, 200), (in[0] > 1).nonzero(150)};
          },
          line),
      function_case(
          "long gather",
          [](const Tensors& in) {
            return Tensors{in[0].gather(0, in[1]), in[0].gather(0, in[1]).sum(1)};
          },
          [](int call) { return Tensors{numbers({700, 3}, call), places({700, 3}, 700, call)}; }),
      function_case(
          "written by places",
          [](const Tensors& in) {
            Tensor x = in[0].clone();
            x[{in[1]}] = x.slice(0, Slice(0, 200)) * 2;
            return Tensors{x};
          },
          [](int call) { return Tensors{numbers({700, 3}, call), places({200}, 700, call)}; }),
      function_case(
          "product with chosen rows",
          [](const Tensors& in) {
            return Tensors{matmul(in[0].index_select(0, in[1]), in[0].slice(0, Slice(0, 3)))};
          },
          [](int call) { return Tensors{numbers({700, 3}, call), places({200}, 700, call)}; }),
  };
}

// A step along the gradient with respect to a parameter.
using Loss = std::function<Tensor(const Tensor& w, const Tensors& in)>;
ReplayCase trained_in_order(const std::string& name, const Shape& shape, const Loss& loss,
                            std::function<Tensors(int)> arguments) {
  return {"trained " + name,
          [shape, loss] {
            const auto w = kept<Tensor>(Tensor::randn(shape).realize());
            w->requires_grad_();
            const auto opt = kept<optim::AdamW>(Tensors{*w});
            return [w, opt, loss](const Tensors& in) {
              opt->zero_grad();
              const Tensor value = loss(*w, in);
              value.backward();
              opt->step();
              return Tensors{value, w->clone()};
            };
          },
          std::move(arguments)};
}

std::vector<ReplayCase> gradients_of_orders() {
  const auto line = rows({300});
  return {
      trained_in_order(
          "sort", {300},
          [](const Tensor& w, const Tensors& in) { return (w.sort().first * in[0]).sum(); }, line),
      trained_in_order(
          "cumsum", {300},
          [](const Tensor& w, const Tensors& in) { return (w.cumsum(0) * in[0]).tanh().sum(); },
          line),
      trained_in_order(
          "cumprod", {300},
          [](const Tensor& w, const Tensors& in) {
            return ((w * 0.01 + 1).cumprod(0) * in[0]).mean();
          },
          line),
      trained_in_order(
          "logcumsumexp", {300},
          [](const Tensor& w, const Tensors& in) { return (w.logcumsumexp(0) * in[0]).mean(); },
          line),
      trained_in_order(
          "cummax", {300},
          [](const Tensor& w, const Tensors& in) { return (w.cummax(0).first * in[0]).mean(); },
          line),
      trained_in_order(
          "topk", {3000},
          [](const Tensor& w, const Tensors& in) {
            return (w.topk(4).first * in[0].slice(0, Slice(0, 4))).sum();
          },
          line),
  };
}

std::vector<ReplayCase> gradients_at_places() {
  const auto at = [](int call) { return Tensors{places({500}, 300, call), numbers({500}, call)}; };
  return {
      trained_in_order(
          "gather", {300},
          [](const Tensor& w, const Tensors& in) { return (w.gather(0, in[0]) * in[1]).mean(); },
          at),
      trained_in_order(
          "index_select", {300, 2},
          [](const Tensor& w, const Tensors& in) {
            return (w.index_select(0, in[0]).sum(1) * in[1]).mean();
          },
          at),
      trained_in_order(
          "scatter", {500},
          [](const Tensor& w, const Tensors& in) {
            return (Tensor::ones({300}).scatter(0, in[0], w, Combine::Sum)).square().mean() +
                   (w * in[1]).mean();
          },
          at),
      trained_in_order(
          "two uses of one table", {1000, 2},
          [](const Tensor& w, const Tensors& in) {
            return (embedding(w, in[0]) * embedding(w, in[1])).sum() + w.square().mean();
          },
          [](int call) {
            return Tensors{places({100}, 1000, call), places({100}, 1000, call + 9)};
          }),
  };
}

INSTANTIATE_TEST_SUITE_P(Orders, Replays, testing::ValuesIn(orders()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Totals, Replays, testing::ValuesIn(totals()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Writes, Replays, testing::ValuesIn(writes()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Reads, Replays, testing::ValuesIn(reads()), name_of_case);
INSTANTIATE_TEST_SUITE_P(GradientsOfOrders, Replays, testing::ValuesIn(gradients_of_orders()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(GradientsAtPlaces, Replays, testing::ValuesIn(gradients_at_places()),
                         name_of_case);

}  // namespace
