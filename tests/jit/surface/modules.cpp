#include "jit/surface/families.h"
#include "plugrad/scan.h"
#include "plugrad/user_kernel.h"

namespace plugrad {

namespace {

using Ts = std::vector<Tensor>;
using T = Tensor;

/// The image of one channel that a matrix is, with a border.
Tensor image(const T& x) {
  return x.unsqueeze(0).unsqueeze(0).pad({{0, 0}, {0, 0}, {2, 2}, {2, 2}});
}

Family layers() {
  return {"modules",
          {{"Linear", [](const T& x, const T&) { return Ts{nn::Linear(x.size(1), 3)(x)}; }},
           {"Embedding",
            [](const T& x, const T& at) {
              return Ts{nn::Embedding(x.size(1), 3)(at) * x.unsqueeze(-1)};
            }},
           {"Dropout", [](const T& x, const T&) { return Ts{nn::Dropout(0.3)(x)}; }},
           {"ConvLayer",
            [](const T& x, const T&) {
              using Layer = nn::ConvLayer<ConvOptions, 2>;
              return Ts{Layer(1, 2, 3)(image(x)), nn::ConvTranspose2d(1, 2, 2)(image(x))};
            }},
           {"BatchNorm",
            [](const T& x, const T&) {
              nn::BatchNorm norm(x.size(1));
              const T y = norm(x.pad({{0, 2}, {0, 0}}));
              return Ts{y, norm.running_mean, norm.running_var};
            }},
           {"other norms",
            [](const T& x, const T&) {
              const T rows = x.unsqueeze(0);
              return Ts{nn::LayerNorm({x.size(1)})(x), nn::GroupNorm(1, x.size(0))(rows),
                        nn::InstanceNorm(x.size(0))(rows), nn::RMSNorm({x.size(1)})(x)};
            }},
           {"cells",
            [](const T& x, const T&) {
              const nn::LSTMCell lstm(x.size(1), 4);
              const nn::GRUCell gru(x.size(1), 4);
              const nn::RNNCell rnn(x.size(1), 4);
              return Ts{lstm(x, lstm(x)).h, gru(x, gru(x)), rnn(x, rnn(x))};
            }},
           {"recorded loops",
            [](const T& x, const T&) {
              const T sequence = x.unsqueeze(1);  // of one row
              const auto [last, all] = scan(
                  [](const Ts& state, const Ts& in) {
                    const T h = (state[0] + in[0]).tanh();
                    return ScanResult{{h}, {h * in[0]}};
                  },
                  {T::zeros({x.size(1)})}, {x});
              return Ts{last[0], all[0], nn::LSTM(x.size(1), 3)(sequence).output,
                        nn::GRU(x.size(1), 3)(sequence).output,
                        nn::RNN(x.size(1), 3)(sequence).output};
            }},
           {"MultiHeadAttention",
            [](const T& x, const T&) {
              const T wide = x.unsqueeze(0).pad({{0, 0}, {0, 0}, {0, x.size(1) % 2}});
              return Ts{nn::MultiHeadAttention(wide.size(2), 2)(wide)};
            }},
           {"Sequential", [](const T& x, const T&) {
              nn::Sequential net(nn::Linear(x.size(1), 5), relu);
              net.add(nn::Linear(5, 2));
              return Ts{nn::Sequential(net)(x)};
            }}}};
}

/// x after two steps of an optimiser towards 1.
template <class Optimiser>
Ts steps(const T& x) {
  T w = x.clone();
  w.requires_grad_();
  Optimiser optimiser({w});
  for (int i = 0; i < 2; ++i) {
    optimiser.zero_grad();
    ((w - 1) * (w - 1)).sum().backward();
    optim::clip_grad_value(optimiser.parameters(), 4);
    optimiser.step();
  }
  return {w, w.grad()};
}

Family optimisers() {
  return {"optimisers",
          {{"SGD", [](const T& x, const T&) { return steps<optim::SGD>(x); }, false},
           {"Adam", [](const T& x, const T&) { return steps<optim::Adam>(x); }, false},
           {"AdamW", [](const T& x, const T&) { return steps<optim::AdamW>(x); }, false},
           {"LAMB", [](const T& x, const T&) { return steps<optim::LAMB>(x); }, false},
           {"Muon", [](const T& x, const T&) { return steps<optim::Muon>(x); }, false},
           {"OptimizerGroup",
            [](const T& x, const T&) {
              T a = x.clone(), b = x * 2;
              a.requires_grad_().set_grad(x);
              b.requires_grad_().set_grad(x.abs());
              optim::OptimizerGroup group(optim::SGD({a}), optim::Adam({b}));
              const T norm = optim::clip_grad_norm({a, b}, 1);
              group.step();
              return Ts{a, b, norm};
            },
            false},
           {"averages",
            [](const T& x, const T&) {
              T average = x.clone();
              nn::update_average({{"x", average}}, {{"x", x * 3}}, 0.9);
              return Ts{average};
            },
            false}}};
}

Family changes() {
  return {"changes in place",
          {{"numbers",
            [](const T& x, const T& at) {
              T y = x.clone();
              y += at;
              y -= 3;
              y *= x;
              y /= at + 1;
              y %= 2;
              return Ts{y};
            }},
           {"bits",
            [](const T&, const T& at) {
              T y = at.clone();
              y <<= 2;
              y |= 9;
              y &= 61;
              y ^= at;
              y >>= 1;
              return Ts{y};
            },
            false},
           {"a kernel",
            [](const T& x, const T&) {
              const ir::UOp i = ir::UOp::range(x.numel(), 0);
              const ir::UOp out = ir::UOp::param(0, DType::F32, x.numel(), true),
                            in = ir::UOp::param(1, DType::F32, x.numel(), false);
              const UserKernel twice{.name = "twice",
                                     .ast = ir::UOp::sink({out.store(i, in.load(i) * 2)})};
              return Ts{twice({x * 3}, {{x.shape()}})[0] + 1};
            },
            false},
           {"a function with a gradient of its own", [](const T& x, const T&) {
              const CustomFunction twice{
                  "twice",
                  [](FunctionContext& context, const Ts& in) {
                    return Ts{context.inputs()[0] + in[0]};
                  },
                  [](const FunctionContext&, const Ts& g) { return Ts{g[0] * 2}; }};
              return Ts{twice({x * x})[0]};
            }}}};
}

}  // namespace

std::vector<Family> module_families() {
  return {layers(), optimisers(), changes()};
}

}  // namespace plugrad
