// Training of networks: optimisers, losses, loops within a call.
#include "jit/patterns/replay_case.h"

using namespace plugrad;

namespace {

struct Small {
  nn::Linear first{12, 16}, second{16, 5};
  nn::Dropout dropout{0.3};
  Tensor operator()(const Tensor& x) const { return second(dropout(first(x).gelu())); }
  PLUGRAD_FIELDS(first, second, dropout)
};

std::function<Tensors(int)> samples() {
  return [](int call) { return Tensors{numbers({8, 12}, call), places({8}, 5, call)}; };
}

template <class Optimizer, class... Options>
ReplayCase network(const std::string& name, Options... options) {
  return {"network, " + name,
          [options...] {
            const auto net = kept<Small>();
            const auto opt = kept<Optimizer>(nn::parameters(*net), options...);
            return [net, opt](const Tensors& in) {
              opt->zero_grad();
              const Tensor loss = cross_entropy((*net)(in[0]), in[1]);
              loss.backward();
              opt->step();
              return Tensors{loss, net->first.weight, net->second.bias};
            };
          },
          samples()};
}

ReplayCase accumulated() {
  return {"gradients of two losses",
          [] {
            const auto net = kept<Small>();
            const auto opt = kept<optim::SGD>(nn::parameters(*net));
            return [net, opt](const Tensors& in) {
              opt->zero_grad();
              cross_entropy((*net)(in[0]), in[1]).backward();
              const Tensor loss = (*net)(in[0] * 0.5).square().mean();
              loss.backward();
              opt->step();
              return Tensors{loss, net->first.weight.clone()};
            };
          },
          samples()};
}

ReplayCase two_steps() {
  return {"two steps in a call",
          [] {
            const auto net = kept<Small>();
            const auto opt = kept<optim::AdamW>(nn::parameters(*net));
            return [net, opt](const Tensors& in) {
              Tensors losses;
              for (int i = 0; i < 2; ++i) {
                opt->zero_grad();
                losses.push_back(cross_entropy((*net)(in[0] + i), in[1]));
                losses.back().backward();
                opt->step();
              }
              return losses;
            };
          },
          samples()};
}

ReplayCase penalised() {
  return {"gradient of a gradient",
          [] {
            const auto net = kept<Small>();
            const auto opt = kept<optim::Adam>(nn::parameters(*net));
            return [net, opt](const Tensors& in) {
              opt->zero_grad();
              const nn::TrainingScope evaluation(false);
              Tensor x = in[0].clone().requires_grad_();
              const Tensor slope = gradient((*net)(x).sum(), {x})[0];
              const Tensor loss = (slope.square().sum(1).sqrt() - 1).square().mean();
              loss.backward();
              opt->step();
              return Tensors{loss, net->first.weight.clone()};
            };
          },
          samples()};
}

ReplayCase averaged() {
  return {"average of the parameters",
          [] {
            const auto net = kept<Small>();
            const auto opt = kept<optim::SGD>(nn::parameters(*net));
            const auto mean = kept<Tensor>(net->first.weight.detach().clone().realize());
            return [net, opt, mean](const Tensors& in) {
              opt->zero_grad();
              const Tensor loss = cross_entropy((*net)(in[0]), in[1]);
              loss.backward();
              opt->step();
              mean->assign(*mean * 0.9 + net->first.weight.detach() * 0.1);
              return Tensors{loss, mean->clone()};
            };
          },
          samples()};
}

ReplayCase convolved() {
  return {"convolution with BatchNorm",
          [] {
            const auto conv = kept<nn::Conv2d>(2, 4, 3);
            const auto norm = kept<nn::BatchNorm>(4);
            Tensors parameters = nn::parameters(*conv);
            for (const Tensor& p : nn::parameters(*norm)) parameters.push_back(p);
            const auto opt = kept<optim::SGD>(parameters);
            return [conv, norm, opt](const Tensors& in) {
              opt->zero_grad();
              const Tensor y = (*norm)((*conv)(in[0])).relu().max_pool2d(2);
              const Tensor loss = y.square().mean();
              loss.backward();
              opt->step();
              return Tensors{loss, conv->weight.clone()};
            };
          },
          rows({3, 2, 8, 8})};
}

template <class Cell>
ReplayCase unrolled(const std::string& name) {
  return {"unrolled " + name,
          [] {
            const auto cell = kept<Cell>(6, 8);
            const auto opt = kept<optim::Adam>(nn::parameters(*cell));
            return [cell, opt](const Tensors& in) {
              opt->zero_grad();
              typename std::decay_t<decltype((*cell)(in[0][0]))> state = (*cell)(in[0][0]);
              for (int64_t i = 1; i < 4; ++i) state = (*cell)(in[0][i], state);
              Tensor loss;
              if constexpr (std::is_same_v<decltype(state), Tensor>)
                loss = state.square().mean();
              else
                loss = state.h.square().mean() + state.c.sum();
              loss.backward();
              opt->step();
              return Tensors{loss, cell->weight_hh.clone()};
            };
          },
          rows({4, 5, 6})};
}

std::vector<ReplayCase> networks() {
  return {network<optim::SGD>("SGD"),
          network<optim::SGD>("SGD with momentum",
                              optim::SGDOptions{.momentum = 0.9, .nesterov = true}),
          network<optim::Adam>("Adam"),
          network<optim::AdamW>("AdamW"),
          network<optim::LAMB>("LAMB"),
          accumulated(),
          two_steps(),
          penalised(),
          averaged(),
          convolved(),
          unrolled<nn::LSTMCell>("LSTM"),
          unrolled<nn::GRUCell>("GRU")};
}

INSTANTIATE_TEST_SUITE_P(Networks, Replays, testing::ValuesIn(networks()), name_of_case);

}  // namespace
