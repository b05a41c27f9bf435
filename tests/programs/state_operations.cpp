// Operations that assign, share or realise tensors.
#include "engine/session.h"
#include "programs/operations.h"

namespace plugrad::programs {
namespace {

using Result = std::vector<Tensor>;

// The result of an assignment to a tensor, without assigning.
Tensor assigned(const Tensor& old, const Tensor& value) {
  require_fit(is_float(old.dtype()) || !is_float(value.dtype()));
  return value.cast(old.dtype()).expand(old.shape());
}

// An assigned leaf that requires a gradient becomes a new leaf: its value depends on no other
// tensor.
void replace(World::Slot& target, const Tensor& value) {
  *target.tensor =
      target.marked ? assigned(*target.tensor, value).detach() : assigned(*target.tensor, value);
}

Result assign(Args& a) {
  World::Slot& target = a.slot();
  const Tensor value = a.tensor();
  require_fit(value.ndim() <= target.tensor->ndim());
  if (a.world().pure)
    replace(target, value);
  else
    target.tensor->assign(value);
  target.leaf = false;
  return {};
}

template <class Change, class Make>
Result in_place(Args& a, Change change, Make make) {
  World::Slot& target = a.slot();
  require_fit(target.tensor->dtype() != DType::Bool);
  const Tensor value = a.chance(30) ? Tensor(a.quarter(4)) : a.numeric();
  if (a.world().pure) {
    const Tensor made = make(*target.tensor, value);
    require_fit(made.shape() == target.tensor->shape());
    replace(target, made);
  } else {
    change(*target.tensor, value);
  }
  target.leaf = false;
  return {};
}

Result realize(Args& a) {
  std::vector<Tensor> list;
  for (int64_t count = a.pick(1, 3); count > 0; --count) list.push_back(a.tensor());
  if (!a.world().pure) Tensor::realize(list);
  return {};
}

Result look(Args& a) {
  const Tensor& x = a.tensor();
  const int64_t how = a.pick(0, 2);
  if (a.world().pure) return {};
  if (how == 0) x.to_bytes();
  if (how == 1) x.schedule();
  if (how == 2) x.contiguous().realize();
  return {};
}

// clang-format off: a table
const Operation kOperations[] = {
    {"change", "assign", assign},
    {"change", "+=", [](Args& a) { return in_place(a, [](Tensor& t, const Tensor& v) { t += v; }, [](const Tensor& t, const Tensor& v) { return t + v; }); }},
    {"change", "-=", [](Args& a) { return in_place(a, [](Tensor& t, const Tensor& v) { t -= v; }, [](const Tensor& t, const Tensor& v) { return t - v; }); }},
    {"change", "*=", [](Args& a) { return in_place(a, [](Tensor& t, const Tensor& v) { t *= v; }, [](const Tensor& t, const Tensor& v) { return t * v; }); }},
    {"change", "/=", [](Args& a) { return in_place(a, [](Tensor& t, const Tensor& v) { t /= v; }, [](const Tensor& t, const Tensor& v) { return t / v; }); }},
    {"alias", "alias", nullptr},  // made by the runner: the variable shares the tensor
    {"compute", "realize", realize, true},
    {"compute", "look", look, true},
    {"compute", "collect", [](Args& a) -> Result { if (!a.world().pure) engine::Session::current().collect(); return {}; }, true},
};
// clang-format on

}  // namespace

std::span<const Operation> state_operations() {
  return kOperations;
}

}  // namespace plugrad::programs
