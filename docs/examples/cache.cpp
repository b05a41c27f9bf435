// A decoder with a key-value cache: one recording serves every length of the text.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  constexpr int64_t kHeads = 4, kPlaces = 64, kWidth = 16;
  Tensor::manual_seed(1);
  const auto weights = [] {
    return (Tensor::randn({kHeads * kWidth, kHeads * kWidth}) * 0.2).realize();
  };
  const Tensor wq = weights(), wk = weights(), wv = weights();
  const auto heads = [](const Tensor& x) {  // (n, heads * width) -> (heads, n, width)
    return x.reshape({-1, kHeads, kWidth}).transpose(0, 1);
  };

  const Variable length("length", 1, kPlaces);
  Tensor keys = Tensor::zeros({kHeads, kPlaces, kWidth});
  Tensor values = Tensor::zeros({kHeads, kPlaces, kWidth});
  auto decode = jit([&](const Tensor& token, const Tensor& n) {
    keys[{Slice(), Slice(n - 1, n)}] = heads(token.matmul(wk));
    values[{Slice(), Slice(n - 1, n)}] = heads(token.matmul(wv));
    return scaled_dot_product_attention(heads(token.matmul(wq)), keys[{Slice(), Slice(0, n)}],
                                        values[{Slice(), Slice(0, n)}])
        .transpose(0, 1)
        .reshape({1, kHeads * kWidth});
  });

  std::vector<Tensor> text = {Tensor::randn({1, kHeads * kWidth}).realize()};
  for (int64_t n = 1; n <= 40; ++n) text.push_back(decode(text.back(), length.bind(n)));
  std::cout << text.size() - 1 << " tokens, " << decode.recordings() << " recording\n";

  // The last token without a cache: every position is computed again.
  text.pop_back();
  const Tensor x = cat(text, 0), last = text.back();
  const Tensor again = scaled_dot_product_attention(heads(last.matmul(wq)), heads(x.matmul(wk)),
                                                    heads(x.matmul(wv)));
  const Tensor cached = decode(last, length.bind(40));  // writes the last position again
  const bool same = heads(cached).allclose(again, 1e-4, 1e-5);
  std::cout << "the cache " << (same ? "agrees" : "does not agree") << "\n";

  try {
    decode(last, length.bind(65));
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }
}
