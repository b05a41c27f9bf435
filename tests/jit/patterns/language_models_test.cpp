// Language models: embedding rows at data-dependent indices, from one index to a batch over a whole
// vocabulary, read alone, with a loss, trained, and through recurrence and attention.
// PLUGRAD_TEST_REPLAY_SIZES=all adds logits of a whole vocabulary at 512 positions.
#include <cstdlib>

#include "jit/patterns/replay_case.h"

using namespace plugrad;

namespace {

struct ModelSizes {
  int64_t batch, length, rows, width;
  int64_t most_classes = 65;  // of the logits; the rows, where those are fewer
  int64_t classes() const { return std::min(rows, most_classes); }
  std::string text() const {
    return std::to_string(batch) + "x" + std::to_string(length) + " of " + std::to_string(rows) +
           (classes() == 65 ? "" : " to " + std::to_string(classes()));
  }
};

std::function<Tensors(int)> batches(const ModelSizes& s) {
  return [s](int call) {
    return Tensors{places({s.batch, s.length}, s.rows, call),
                   places({s.batch, s.length}, s.rows, call + 50)};
  };
}

struct Head {
  nn::Embedding table;
  nn::Linear head;
  explicit Head(const ModelSizes& s) : table(s.rows, s.width), head(s.width, s.classes()) {}
  Tensor operator()(const Tensor& at) const { return head(table(at)); }
  PLUGRAD_FIELDS(table, head)
};

Tensor loss_of(const Tensor& logits, const Tensor& targets) {
  const int64_t classes = logits.size(-1);
  return cross_entropy(logits.reshape({-1, classes}), targets.reshape({-1}) % classes);
}

ReplayCase forward(const ModelSizes& s) {
  return {"forward " + s.text(),
          [s] {
            const auto net = kept<nn::Embedding>(s.rows, s.width);
            return [net](const Tensors& in) { return Tensors{(*net)(in[0])}; };
          },
          batches(s)};
}

ReplayCase evaluated(const ModelSizes& s) {
  return {"evaluated " + s.text(),
          [s] {
            const auto net = kept<Head>(s);
            return [net](const Tensors& in) {
              const nn::TrainingScope evaluation(false);
              const Tensor logits = (*net)(in[0]);
              return Tensors{loss_of(logits, in[1]), logits.argmax(-1)};
            };
          },
          batches(s)};
}

template <class Optimizer>
ReplayCase trained(const ModelSizes& s, const std::string& name) {
  return {"trained with " + name + " " + s.text(),
          [s] {
            const auto net = kept<Head>(s);
            const auto opt = kept<Optimizer>(nn::parameters(*net));
            return [net, opt](const Tensors& in) {
              opt->zero_grad();
              const Tensor loss = loss_of((*net)(in[0]), in[1]);
              loss.backward();
              opt->step();
              return Tensors{loss, net->head.weight.sum(1), net->table.weight.sum(1)};
            };
          },
          batches(s)};
}

struct Recurrent {
  nn::Embedding table;
  nn::GRUCell cell;
  nn::Linear head;
  explicit Recurrent(const ModelSizes& s)
      : table(s.rows, s.width), cell(s.width, 16), head(16, s.classes()) {}
  Tensor operator()(const Tensor& at) const {
    const Tensor x = table(at);
    Tensor h;
    Tensors states;
    for (int64_t i = 0; i < 3; ++i) states.push_back(h = cell(x[{Slice(), i}], h));
    return head(stack(states, 1));
  }
  PLUGRAD_FIELDS(table, cell, head)
};

ReplayCase recurrent(const ModelSizes& s) {
  return {"GRU " + s.text(),
          [s] {
            const auto net = kept<Recurrent>(s);
            const auto opt = kept<optim::Adam>(nn::parameters(*net));
            return [net, opt](const Tensors& in) {
              opt->zero_grad();
              const Tensor loss = loss_of((*net)(in[0]), in[1].slice(1, Slice(0, 3)));
              loss.backward();
              opt->step();
              return Tensors{loss, net->cell.weight_hh.clone()};
            };
          },
          batches(s)};
}

struct Transformer {
  nn::Embedding table, position;
  nn::LayerNorm norm;
  nn::MultiHeadAttention attention;
  nn::Dropout dropout;
  Transformer(const ModelSizes& s)
      : table(s.rows, s.width),
        position(s.length, s.width),
        norm({s.width}),
        attention(s.width, 2),
        dropout(0.1) {}
  // The table is also the last layer's weight.
  Tensor operator()(const Tensor& at) const {
    Tensor x = table(at) + position(Tensor::arange(at.size(1)));
    x = x + dropout(attention(norm(x), {.causal = true}));
    return x.linear(table.weight.transpose());
  }
  PLUGRAD_FIELDS(table, position, norm, attention, dropout)
};

ReplayCase transformer(const ModelSizes& s) {
  return {"transformer " + s.text(),
          [s] {
            const auto net = kept<Transformer>(s);
            const auto opt = kept<optim::AdamW>(nn::parameters(*net));
            return [net, opt](const Tensors& in) {
              opt->zero_grad();
              const Tensor loss = loss_of((*net)(in[0]), in[1]);
              loss.backward();
              optim::clip_grad_norm(opt->parameters(), 1.0);
              opt->step();
              return Tensors{loss, net->table.weight.sum(1), net->position.weight.clone()};
            };
          },
          batches(s)};
}

ReplayCase computed_on_device(const ModelSizes& s) {
  return {"places computed on the device " + s.text(),
          [s] {
            const auto net = kept<nn::Embedding>(s.rows, s.width);
            return [net, s](const Tensors& in) {
              const Tensor at = (in[0] * 31 + in[1]) % s.rows;
              const Tensor loss = ((*net)(at) * 0.5).square().mean();
              net->weight.zero_grad();
              loss.backward();
              return Tensors{loss, net->weight.grad()};
            };
          },
          batches(s)};
}

ReplayCase given_by_host(const ModelSizes& s) {
  return {"places given by the host " + s.text(),
          [s] {
            const auto net = kept<nn::Embedding>(s.rows, s.width);
            return [net, s](const Tensors& in) {
              const Tensor at = places({s.batch, s.length}, s.rows, 3);
              const Tensor loss = ((*net)(at) + (*net)(in[0])).square().mean();
              net->weight.zero_grad();
              loss.backward();
              return Tensors{loss, net->weight.grad()};
            };
          },
          batches(s)};
}

ReplayCase decoded(const ModelSizes& s) {
  return {"decoded " + s.text(),
          [s] {
            const auto net = kept<Head>(s);
            const auto cache = kept<Tensor>(Tensor::zeros({s.batch, s.length, s.width}).realize());
            return [net, cache](const Tensors& in) {
              const nn::TrainingScope evaluation(false);
              const Tensor& at = in[2];
              const Tensor x = net->table(in[0].gather(1, at));
              cache->assign(cache->scatter(1, at.unsqueeze(-1).expand(x.shape()), x));
              const Tensor logits = net->head(*cache).mean(1);
              return Tensors{logits.argmax(-1), logits.softmax(-1).multinomial(1), cache->clone()};
            };
          },
          [s](int call) {
            Tensors given = batches(s)(call);
            given.push_back(Tensor::full({s.batch, 1}, call % s.length, DType::I32));
            return given;
          }};
}

constexpr ModelSizes kSmall{1, 1, 7, 4}, kCharacters{16, 64, 65, 8}, kWords{1, 128, 1000, 8},
    kVocabulary{4, 64, 50257, 4}, kOneWord{1, 1, 50257, 4, 50257}, kLine{1, 16, 50257, 4, 50257},
    kBatch{32, 512, 50257, 4}, kWholeBatch{4, 128, 50257, 16, 50257};

std::vector<ReplayCase> cases() {
  std::vector<ReplayCase> all;
  for (const ModelSizes& s : {kSmall, kCharacters, kWords, kVocabulary}) {
    all.push_back(forward(s));
    all.push_back(evaluated(s));
    all.push_back(trained<optim::AdamW>(s, "AdamW"));
    all.push_back(computed_on_device(s));
    all.push_back(given_by_host(s));
  }
  std::vector<ModelSizes> large = {kOneWord, kLine, kBatch};
  const char* more = std::getenv("PLUGRAD_TEST_REPLAY_SIZES");
  if (more != nullptr && std::string(more) == "all") large.push_back(kWholeBatch);
  for (const ModelSizes& s : large) {
    all.push_back(forward(s));
    all.push_back(evaluated(s));
    all.push_back(trained<optim::AdamW>(s, "AdamW"));
  }
  for (const ModelSizes& s : {kCharacters, kWords, kVocabulary}) all.push_back(recurrent(s));
  for (const ModelSizes& s : {kCharacters, kWords}) all.push_back(transformer(s));
  all.push_back(decoded(kCharacters));
  all.push_back(trained<optim::SGD>(kWords, "SGD"));
  all.push_back(trained<optim::LAMB>(kWords, "LAMB"));
  return all;
}

INSTANTIATE_TEST_SUITE_P(LanguageModels, Replays, testing::ValuesIn(cases()), name_of_case);

}  // namespace
