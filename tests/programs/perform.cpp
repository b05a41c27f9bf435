#include "programs/perform.h"

#include <string_view>

#include "base/check.h"
#include "plugrad/error.h"
#include "tensor/handles.h"

namespace plugrad::programs {
namespace {

constexpr int64_t kElementLimit = 2500, kMostAxes = 5;

void alias(World& world, Args& args, int id) {
  const World::Slot source = args.slot();
  World::Slot copy = source;
  if (!world.pure) copy.tensor = std::make_shared<Tensor>(*source.tensor);
  copy.leaf = false;
  world.slots[{id, 0}] = copy;
}

void add_results(World& world, const Step& step, const std::vector<Tensor>& results) {
  for (const Tensor& result : results) {
    require_fit(result.numel() <= kElementLimit && result.ndim() <= kMostAxes);
    for (const auto& [variable, slot] : world.slots)
      ensure(tensor::state_of(*slot.tensor) != tensor::state_of(result),
             "{} returned its argument's handle", step.operation->name);
  }
  int output = 0;
  for (const Tensor& result : results) {
    const std::string_view name = step.operation->name;
    const bool leaf = (name == "leaf" || name == "given_leaf") && is_float(result.dtype());
    const bool is_made = std::string_view(step.operation->family) == "leaf";
    Tensor placed = world.place ? world.place(result, step.id, is_made) : result;
    if (!world.pure) placed = placed.clone();  // tests/unit/tensor/view_program.h tries views
    World::Slot slot{std::make_shared<Tensor>(placed), leaf, leaf};
    if (leaf && !world.pure) slot.tensor->requires_grad_();
    world.slots[{step.id, output++}] = slot;
  }
}

}  // namespace

bool perform(World& world, Step& step, std::mt19937_64* random) {
  Args args(world, step, random);
  try {
    if (!step.operation->apply)
      alias(world, args, step.id);
    else
      add_results(world, step, step.operation->apply(args));
    return true;
  } catch (const Rejected&) {
    return false;
  } catch (const Error& error) {
    if (!world.pure || error.kind() != ErrorKind::User) throw;
    return false;
  }
}

}  // namespace plugrad::programs
