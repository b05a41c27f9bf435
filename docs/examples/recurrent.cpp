#include <plugrad/plugrad.h>
#include <plugrad/scan.h>

#include <iostream>
using namespace plugrad;

int main() {
  // Each step halves the state and adds an input of 100, 0 or 50. The step is recorded once.
  Tensor kept = Tensor(0.5f).requires_grad_();
  Tensor given = Tensor::from<float>({100, 0, 50});
  ScanResult stock = scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& x) {
        Tensor now = state[0] * kept + x[0];
        return ScanResult{{now}, {now}};
      },
      {Tensor(0.0f)}, {given});
  for (float now : stock.outputs[0].to_vector<float>()) std::cout << now << " ";
  Tensor slope = gradient(stock.state[0], {kept})[0];  // of 100 k² + 0 k + 50
  std::cout << "slope " << slope.item<float>() << "\n";

  // Two sequences of lengths 4 and 2, in a batch padded to the longer one.
  Tensor::manual_seed(1);
  nn::LSTM lstm(3, 5);
  Tensor x = Tensor::randn({4, 2, 3}), lengths = Tensor::from<int>({4, 2});
  auto [output, state] = lstm(x, {}, lengths);
  auto [alone, state_alone] = lstm(x[{Slice(0, 2), Slice(1, 2)}]);  // the short one by itself
  bool empty_behind = (output[{Slice(2, 4), 1}] == 0).all().item<bool>();
  bool same = state.h[{Slice(), 1}].allclose(state_alone.h[{Slice(), 0}]);
  std::cout << "0 behind the length: " << empty_behind << ", the same state: " << same << "\n";
  return empty_behind && same ? 0 : 1;
}
