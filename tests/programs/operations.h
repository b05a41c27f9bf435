// The table of operations by family, and the drawing of their arguments.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>

#include "plugrad/plugrad.h"
#include "programs/program.h"

namespace plugrad::programs {

/// Thrown by an operation whose operands do not fit; the step is skipped.
struct Rejected : std::exception {};

/// The variables while a program runs. A pure world computes nothing and replaces tensors instead
/// of assigning them: it holds the expected graphs of the other world, which uses tensors as a user
/// does.
struct World {
  explicit World(bool pure_) : pure(pure_) {}

  struct Slot {
    std::shared_ptr<Tensor> tensor;  // in the pure world shared by copies of a handle
    bool leaf = false;               // a float leaf that no step has changed
    bool marked = false;             // requires_grad_(), as all float leaves
  };
  const bool pure;
  std::function<Tensor(const Tensor&, int step, bool is_leaf)>
      place;  // of the other world: moves results on a mesh
  std::map<Variable, Slot> slots;
};

/// Draws variables of the world and numbers for an operation, at random or from the record.
class Args {
 public:
  Args(World& world, Step& step, std::mt19937_64* random)
      : world_(world), step_(step), random_(random) {}

  using Filter = bool (*)(const Tensor&);
  const Tensor& tensor(Filter filter = [](const Tensor&) { return true; });
  const Tensor& real();       ///< of a float dtype
  const Tensor& whole();      ///< of an integer dtype
  const Tensor& numeric();    ///< not bool
  const Tensor& with_axes();  ///< of at least one axis
  /// Like `other` in dtype and shape; itself when nothing else is.
  const Tensor& like(const Tensor& other);
  World::Slot& slot();       ///< any variable, for modification
  Variable leaf_variable();  ///< an unchanged float leaf
  World& world() { return world_; }

  int64_t pick(int64_t low, int64_t high);  ///< both included
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <class T, size_t n>
  const T& one_of(const T (&list)[n]) {
    return list[static_cast<size_t>(pick(0, static_cast<int64_t>(n) - 1))];
  }
  int64_t axis(const Tensor& x);  ///< of at least one axis; negative at times
  Axes axes(const Tensor& x);     ///< none, one or some
  double quarter(double most = 2);

 private:
  Variable draw(const std::function<bool(Variable, const World::Slot&)>& fits);
  World& world_;
  Step& step_;
  std::mt19937_64* random_;  // null: replay
  size_t next_input_ = 0, next_number_ = 0;
};

struct Operation {
  const char* family;
  const char* name;
  std::vector<Tensor> (*apply)(Args&);
  /// Acts on the real world alone: it must not change any value.
  bool unobservable = false;
};

/// All operations, those of a family together.
std::span<const Operation* const> operations();
const Operation& operation(std::string_view name);

void require_fit(bool fits);  ///< throws Rejected otherwise

// The tables.
std::span<const Operation> leaf_operations();
std::span<const Operation> elementwise_operations();
std::span<const Operation> shape_operations();
std::span<const Operation> reduce_operations();
std::span<const Operation> network_operations();
std::span<const Operation> state_operations();

}  // namespace plugrad::programs
