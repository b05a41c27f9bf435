// Draws arguments, at random or from the record.
#include <algorithm>

#include "programs/operations.h"

namespace plugrad::programs {

void require_fit(bool fits) {
  if (!fits) throw Rejected{};
}

// Not the standard distributions: their results differ between libraries, and seeds are written
// down.
int64_t Args::pick(int64_t low, int64_t high) {
  require_fit(low <= high);
  if (!random_) {
    require_fit(next_number_ < step_.numbers.size());
    return step_.numbers[next_number_++];
  }
  const auto width = static_cast<uint64_t>(high - low) + 1;
  step_.numbers.push_back(low + static_cast<int64_t>((*random_)() % width));
  return step_.numbers.back();
}

// Recent variables are likelier, so that programs become deep.
Variable Args::draw(const std::function<bool(Variable, const World::Slot&)>& fits) {
  if (!random_) {
    require_fit(next_input_ < step_.inputs.size());
    const Variable variable = step_.inputs[next_input_++];
    const auto found = world_.slots.find(variable);
    require_fit(found != world_.slots.end() && fits(variable, found->second));
    return variable;
  }
  std::vector<Variable> fitting;
  for (const auto& [variable, slot] : world_.slots)
    if (fits(variable, slot)) fitting.push_back(variable);
  require_fit(!fitting.empty());
  size_t low = 0;
  if ((*random_)() % 10 < 6 && fitting.size() > 4) low = fitting.size() - 4;
  step_.inputs.push_back(fitting[low + (*random_)() % (fitting.size() - low)]);
  return step_.inputs.back();
}

const Tensor& Args::tensor(Filter filter) {
  const Variable found =
      draw([&](Variable, const World::Slot& slot) { return filter(*slot.tensor); });
  return *world_.slots.at(found).tensor;
}
const Tensor& Args::real() {
  return tensor([](const Tensor& t) { return is_float(t.dtype()); });
}
const Tensor& Args::whole() {
  return tensor([](const Tensor& t) { return is_integer(t.dtype()); });
}
const Tensor& Args::numeric() {
  return tensor([](const Tensor& t) { return t.dtype() != DType::Bool; });
}
const Tensor& Args::with_axes() {
  return tensor([](const Tensor& t) { return t.ndim() > 0; });
}

const Tensor& Args::like(const Tensor& other) {
  const Shape shape = other.shape();
  const Variable found = draw([&](Variable, const World::Slot& slot) {
    return slot.tensor->dtype() == other.dtype() && slot.tensor->shape() == shape;
  });
  return *world_.slots.at(found).tensor;
}

World::Slot& Args::slot() {
  return world_.slots.at(draw([](Variable, const World::Slot&) { return true; }));
}

Variable Args::leaf_variable() {
  return draw([](Variable, const World::Slot& slot) { return slot.leaf; });
}

int64_t Args::axis(const Tensor& x) {
  const int64_t rank = x.ndim();
  return pick(-rank, rank - 1);
}

Axes Args::axes(const Tensor& x) {
  std::vector<int64_t> list;
  const int64_t rank = x.ndim();
  for (int64_t i = 0; i < rank; ++i)
    if (pick(0, 1)) list.push_back(chance(20) ? i - rank : i);
  return Axes(list);
}

double Args::quarter(double most) {
  const auto quarters = static_cast<int64_t>(4 * most);
  return 0.25 * static_cast<double>(pick(-quarters, quarters));
}

std::span<const Operation* const> operations() {
  static const std::vector<const Operation*> all = [] {
    std::vector<const Operation*> list;
    for (const auto table : {leaf_operations(), elementwise_operations(), shape_operations(),
                             reduce_operations(), network_operations(), state_operations()})
      for (const Operation& one : table) list.push_back(&one);
    return list;
  }();
  return all;
}

const Operation& operation(std::string_view name) {
  for (const Operation* one : operations())
    if (name == one->name) return *one;
  throw Rejected{};
}

}  // namespace plugrad::programs
