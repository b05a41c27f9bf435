// Code shown by the tensor guide, in its order.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

namespace {

void print(const Tensor& t) {
  std::cout << to_string(t) << "\n";
}

void handles() {
  Tensor a = Tensor::from({1.f, 2.f}), b = a;
  Tensor before = a * 4;
  a.assign(Tensor::from({10.f, 20.f}));
  b.to_vector<float>();       // 10 20: b is a
  before.to_vector<float>();  // 4 8
  print(b);
  print(before);
}

void shapes() {
  const Tensor x = Tensor::arange(120).reshape({2, 12, 5}), m = Tensor::arange(12).reshape({3, 4});
  const Tensor a = Tensor::ones({2, 3, 4}), b = Tensor::ones({2, 4, 5});
  x.rearrange("b (h w) c -> b c h w", {{"h", 4}});  // axes by name, as in einops
  x.pad({1, 1, 2, 2}, PadMode::Reflect);  // left, right, top, bottom; also Replicate, Circular
  m.pad({{0, 0}, {1, -1}}, 3.0);          // before and after each axis; negative numbers crop
  m.shrink({std::nullopt, {1, 3}});       // a part of each axis
  einsum("bij,bjk->bik", {a, b});         // sums of products by names of axes
  std::cout << x.rearrange("b (h w) c -> b c h w", {{"h", 4}}) << "\n";
  print(m.pad({{0, 0}, {1, -1}}, 3.0)[0]);
}

void views() {
  Tensor x = Tensor::zeros({2, 3});
  Tensor row = x[0];
  row += 1;              // x: 1 1 1, 0 0 0
  x.transpose()[2] = 5;  // x: 1 1 5, 0 0 5
  x.assign(7);           // row: 7 7 7
  for (Tensor& half : x.chunk(2)) half *= 2;
  print(row);
}

void indices() {
  Tensor t = Tensor::arange(24).reshape({4, 3, 2});
  const Tensor rows = Tensor::from({0, 2}), columns = Tensor::from({1, 1}), value = Tensor(7);
  t[0];
  t[{-1, 2}];                          // elements along leading axes
  t[{Slice(1, 3), Slice({}, {}, 2)}];  // rows 1 and 2, every second column
  t[{kEllipsis, kNewAxis, 0}];         // the last axis' first, behind a new axis
  t[{Slice({}, {}, -1)}];              // backwards
  t[{Slice(), {2, 0, 2}}];             // columns by a list
  t[rows];
  t[{rows, columns}];           // indices that are data: tensors of integers
  t[{Slice(1, 3), 0}] = value;  // changes t for every copy of its handle
  t[rows] += 1;
  t[1][2] = 0;
  print(t.flatten());
}

void windows() {
  const Tensor x = Tensor::ones({1, 4, 8, 8}), w = Tensor::ones({8, 1, 3, 3});
  const Tensor bias = Tensor::zeros({8});
  const Tensor line = Tensor::ones({1, 4, 8}), taps = Tensor::ones({2, 4, 3});
  conv2d(x, w, bias, {.stride = 2, .padding = {1, 0}, .groups = 4});
  conv1d(line, taps, {}, {.padding = "same"});                     // keeps the size
  conv2d(x, w, {}, {.padding = {{0, 1}, {2, 2}}, .groups = 4});    // begin and end of each axis
  conv2d(x, w, {}, {.padding = {{-1, 0}, {0, -1}}, .groups = 4});  // negative numbers cut
  auto [y, places] = max_pool2d_with_places(x, 3, {.stride = 2, .ceil_mode = true});
  interpolate(x, {.size = {32, 32}, .mode = Interpolation::Linear});
  std::cout << conv1d(line, taps, {}, {.padding = "same"}) << " " << y << "\n";
}

void backward_of_your_own() {
  const Tensor x = Tensor::from({0.4f, 1.6f}).requires_grad_();
  const CustomFunction round_through{
      "round_through",
      [](FunctionContext&, const std::vector<Tensor>& in) { return std::vector{in[0].round()}; },
      [](const FunctionContext&, const std::vector<Tensor>& gradients) { return gradients; }};
  Tensor y = round_through({x})[0];
  print(gradient(y.sum(), {x})[0]);
}

}  // namespace

int main() {
  handles();
  shapes();
  views();
  indices();
  windows();
  backward_of_your_own();
}
