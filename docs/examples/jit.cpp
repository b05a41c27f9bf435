#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  int runs = 0;
  Tensor total = Tensor::zeros({2});
  auto step = jit([&](const Tensor& x, double scale) {
    ++runs;      // runs twice for each scale, then no more
    total += x;  // every replay does this
    return (x * scale).sum();
  });
  for (int i = 1; i <= 5; ++i) {
    const float value = static_cast<float>(i);
    Tensor x = Tensor::from<float>({value, 10 * value});
    std::cout << step(x, 2).item<float>() << " ";
  }
  std::cout << "in " << runs << " runs; total " << total.to_vector<float>()[1] << "\n";

  // One recording for every length: the cache has its full size, unused rows are masked.
  const Variable length("length", 1, 64);
  Tensor cache = Tensor::zeros({64, 8});
  auto decode = jit([&](const Tensor& token, const Tensor& n) {
    const Tensor place = Tensor::arange(64).reshape({64, 1});
    cache.assign(where(place == n - 1, token, cache));
    const Tensor scores = matmul(cache, token.reshape({8, 1}));
    return (where(place < n, scores, -1e30).softmax(0) * cache).sum(0);
  });
  Tensor last;
  for (int n = 1; n <= 10; ++n)
    last = decode(Tensor::full({8}, 0.1 * n).contiguous(), length.bind(n));
  std::cout << decode.recordings() << " recording, " << last.to_vector<float>()[0] << "\n";
  try {
    decode(Tensor::zeros({8}), length.bind(65));
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }
}
