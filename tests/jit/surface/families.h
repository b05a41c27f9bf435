// The public tensor functions by family, each as a function of numbers x and indices `at` of one
// shape (rows, columns), with indices below `columns`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugrad/plugrad.h"

namespace plugrad {

struct Member {
  std::string name;
  std::function<std::vector<Tensor>(const Tensor& x, const Tensor& at)> function;
  bool has_gradient = true;  // its first result, by x
};

struct Family {
  std::string name;
  std::vector<Member> members;
};

std::vector<Family> elementwise_families();
std::vector<Family> shaping_families();
std::vector<Family> data_families();  // orders, totals, indices that are data, random numbers
std::vector<Family> network_families();
std::vector<Family> module_families();  // modules, optimisers, changes in place

}  // namespace plugrad
