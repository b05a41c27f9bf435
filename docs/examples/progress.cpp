// A training whose loss and accuracy can be watched in a browser: open train.html.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  Tensor::manual_seed(1);
  Tensor points = Tensor::uniform({512, 2}, -1, 1).realize();
  Tensor is_inside = ((points * points).sum(1) < 0.6).cast(DType::I32).realize();  // of a circle
  nn::Linear hidden(2, 32), out(32, 2);
  optim::Adam opt({hidden.weight, hidden.bias, out.weight, out.bias}, {.lr = 0.02});

  const int steps = 200;
  optim::Progress progress(steps, {.title = "circle", .units_a_step = 512, .plot = "train.html"});
  for (int i = 0; i < steps; ++i) {
    opt.zero_grad();
    Tensor scores = out(relu(hidden(points)));
    Tensor loss = sparse_categorical_crossentropy(scores, is_inside);
    loss.backward();
    opt.step();
    Tensor accuracy = (scores.argmax(1) == is_inside).mean();
    progress.update(loss.item<double>(), accuracy.item<double>());
  }
  std::cout << "train.html shows " << steps << " steps\n";
}
