#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  std::cout << "default device: " << Device::default_device() << "\n";
  Tensor here = Tensor::from<float>({1, 2, 3});
  Tensor there = (here.to("REFERENCE") * 2.0).to(here.device());  // computed by the interpreter
  std::cout << (here + there).to_vector<float>()[2] << "\n";      // 9
  try {
    here + Tensor::from<float>({1, 1, 1}, "REFERENCE");
  } catch (const Error& error) {
    std::cout << to_string(error.kind()) << ": " << error.what() << "\n";
  }
}
