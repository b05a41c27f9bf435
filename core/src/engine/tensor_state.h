// The node that a Tensor denotes in the session, and its links to views of the same memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {
struct ViewStep;
}

namespace plugrad::detail {

struct TensorState;

/// Connects a state that shows elements of another, its base, with it (engine/views/linked_views.h).
struct ViewLinks {
  enum class Writes : uint8_t {
    ToBase,    ///< go to the elements of the base; without a base, to the state itself
    Expanded,  ///< refused: an element of the base stands at several places
    Computed,  ///< refused: no movement leads back to the tensor whose elements are shown
  };
  TensorState* base = nullptr;
  TensorState* first = nullptr;  ///< view of this base; the others follow by `next`
  TensorState* previous = nullptr;
  TensorState* next = nullptr;
  // The movements from the base's node to the view's: `path`, then the nodes above `from` up to
  // `node`, two nodes that the graph has until it is renumbered.
  using Path = std::shared_ptr<const std::vector<engine::ViewStep>>;
  Path path;
  Id from = kNoId, node = kNoId;
  std::vector<Path> outer_paths;  ///< from the base's base, its base, …: for when the base dies
  std::shared_ptr<TensorState> held_base;  ///< a base that only its views hold
  Writes writes = Writes::ToBase;
  bool is_detached = false;  ///< no gradient flows from the base
  bool is_lost =
      false;  ///< of a base: its tensor is gone; its node is kNoId, or still has the value
  bool stands_alone = false;  ///< during a jitted call that uses it: it has a value of its own
  bool is_behind = false;     ///< then: the base was assigned, or the view was and is no more
};

/// The node that a Tensor (or a user's UOp) denotes: a root of the session's graph. Made by
/// Session::make; its fields are accessed under a Session::Lock. Here because the public handles
/// declare it.
struct TensorState : std::enable_shared_from_this<TensorState> {
  Id node = kNoId;
  uint32_t device = 0;         ///< where constants alone would be stored; 0: the default device
  bool requires_grad = false;  ///< set with Session::set_requires_grad
  bool pending = false;        ///< assigned since it was last realised
  std::vector<Id> earlier;  ///< while it is marked: nodes that it denoted before and something uses
  std::shared_ptr<TensorState> grad;
  uint64_t backward = 0;  ///< of a gradient: the number of its backward() call; 0: none
  uint64_t call = 0;      ///< number of the jitted call that made it (jit/trace.h)
  uint64_t recorded = 0;  ///< on a mesh: number of the function that made it (RecordedFunctions)
  uint64_t number = 0;    ///< of this state among all that were made
  ViewLinks links;

  TensorState* previous = nullptr;  // the session's list of live states
  TensorState* next = nullptr;
};

}  // namespace plugrad::detail
