#include "unit/tensor/view_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace plugrad::view_program {
namespace {

size_t count_of(const Shape& shape) {
  return static_cast<size_t>(
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
}

/// Places of a tensor of `shape`: `from(position)` gives the position in x of each.
template <class From>
Places picked(const Places& x, const Shape& shape, const From& from) {
  Places result{x.root, {}, shape, x.is_detached};
  Shape position(shape.size());
  for (size_t i = 0; i < count_of(shape); ++i) {
    size_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0; rest /= static_cast<size_t>(shape[axis]))
      position[axis] = static_cast<int64_t>(rest % static_cast<size_t>(shape[axis]));
    const Shape old = from(position);
    size_t at = 0;
    for (size_t axis = 0; axis < old.size(); ++axis)
      at = at * static_cast<size_t>(x.shape[axis]) + static_cast<size_t>(old[axis]);
    result.at.push_back(x.at[at]);
  }
  return result;
}

class Maker {
 public:
  Maker(uint32_t seed, const std::vector<Shape>& roots, const Options& options)
      : random_(seed), options_(options) {
    for (const Shape& shape : roots)
      places_.push_back(Places::of(std::vector<double>(count_of(shape)), shape));
    for (const Places& p : places_) roots_.push_back(p.root.get());
  }

  std::vector<Action> make() {
    std::vector<Action> actions;
    while (actions.size() < options_.actions) {
      Action action;
      if (!choose(action)) continue;
      perform({action}, places_, std::vector<double>(kLeaf));
      actions.push_back(action);
    }
    return actions;
  }

 private:
  int64_t number(int64_t low, int64_t high) {  // both included
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  bool choose(Action& action) {
    using Kind = Action::Kind;
    action.of = static_cast<size_t>(number(0, static_cast<int64_t>(places_.size()) - 1));
    const Places& x = places_[action.of];
    if (!x.root) return false;
    const Kind kinds[] = {Kind::View,    Kind::View,     Kind::View,    Kind::Assign,
                          Kind::Add,     Kind::Multiply, Kind::AddView, Kind::SetItem,
                          Kind::AddLeaf, Kind::SetLeaf,  Kind::Realize, Kind::Drop};
    action.kind = kinds[number(0, std::ssize(kinds) - 1)];
    action.number = static_cast<double>(number(-3, 3));
    const auto root = std::ranges::find(roots_, x.root.get()) - roots_.begin();
    const bool has_gradients = static_cast<size_t>(root) >= options_.first_with_gradients;
    switch (action.kind) {
      case Kind::View:
        return choose(action.move, x);
      case Kind::AddView:
        action.other = static_cast<size_t>(number(0, static_cast<int64_t>(places_.size()) - 1));
        return places_[action.other].root && !places_[action.other].is_detached &&
               places_[action.other].shape == x.shape &&
               (has_gradients || places_[action.other].root == x.root);
      case Kind::SetItem:
        if (x.shape.empty()) return false;
        action.begin = number(0, x.shape[0] - 1);
        return true;
      case Kind::AddLeaf:
      case Kind::SetLeaf:
        action.begin = number(0, kLeaf - 1);
        return has_gradients;
      case Kind::Realize:
      case Kind::Drop:
        return options_.realizes && std::ranges::count_if(places_, &Places::has_root) > 1;
      default:
        return true;
    }
  }

  bool choose(Move& move, const Places& x) {
    using Kind = Move::Kind;
    const auto rank = static_cast<int64_t>(x.shape.size());
    move.kind = static_cast<Kind>(number(0, 7));
    if (move.kind == Kind::Unsqueeze) {
      move.axis = number(0, rank);
      return rank < 4;
    }
    if (move.kind == Kind::Detach) return number(0, 2) == 0;
    if (rank == 0) return false;
    move.axis = number(0, rank - 1);
    const int64_t size = x.shape[static_cast<size_t>(move.axis)];
    switch (move.kind) {
      case Kind::Slice:
        move.begin = number(0, size - 1);
        move.end = number(move.begin + 1, size);
        move.step = number(1, 2);
        return true;
      case Kind::Select:
        move.begin = number(0, size - 1);
        return true;
      case Kind::Permute:
        move.order.resize(x.shape.size());
        std::iota(move.order.begin(), move.order.end(), 0);
        std::ranges::shuffle(move.order, random_);
        return true;
      case Kind::Reshape:
        move.shape = number(0, 1) == 0 || x.at.size() % 2 != 0
                         ? Shape{static_cast<int64_t>(x.at.size())}
                         : Shape{2, static_cast<int64_t>(x.at.size() / 2)};
        return true;
      case Kind::Diagonal:
        return rank == 2;
      default:
        return true;
    }
  }

  std::mt19937 random_;
  const Options options_;
  std::vector<Places> places_;
  std::vector<const Root*> roots_;
};

}  // namespace

Places Places::of(const std::vector<double>& values, const Shape& shape) {
  Places result{std::make_shared<Root>(), std::vector<size_t>(values.size()), shape};
  std::iota(result.at.begin(), result.at.end(), size_t{0});
  for (const double value : values) result.root->elements.push_back({value});
  return result;
}

Element Places::element(size_t i) const {
  Element element = root->elements[at[i]];
  if (is_detached) std::ranges::fill(element.slope, 0.0);
  return element;
}

// What is written through detach() has no gradient.
void Places::set(size_t i, Element element) const {
  if (is_detached) std::ranges::fill(element.slope, 0.0);
  root->elements[at[i]] = element;
}

std::vector<double> Places::values() const {
  std::vector<double> result;
  for (size_t i = 0; i < at.size(); ++i) result.push_back(element(i).value);
  return result;
}

Tensor moved(const Tensor& x, const Move& move) {
  switch (move.kind) {
    case Move::Kind::Slice:
      return x.slice(move.axis, Slice(move.begin, move.end, move.step));
    case Move::Kind::Select:
      return x.slice(move.axis, Slice(move.begin, move.begin + 1)).squeeze(move.axis);
    case Move::Kind::Permute:
      return x.permute(move.order);
    case Move::Kind::Reshape:
      return x.reshape(move.shape);
    case Move::Kind::Flip:
      return x.flip(move.axis);
    case Move::Kind::Unsqueeze:
      return x.unsqueeze(move.axis);
    case Move::Kind::Diagonal:
      return x.diagonal();
    default:
      return x.detach();
  }
}

Places moved(const Places& x, const Move& move) {
  Shape shape = x.shape;
  const auto axis = static_cast<size_t>(move.axis);
  switch (move.kind) {
    case Move::Kind::Slice:
      shape[axis] = (move.end - move.begin + move.step - 1) / move.step;
      return picked(x, shape, [&](Shape p) {
        p[axis] = move.begin + p[axis] * move.step;
        return p;
      });
    case Move::Kind::Select:
      shape.erase(shape.begin() + move.axis);
      return picked(x, shape, [&](Shape p) {
        p.insert(p.begin() + move.axis, move.begin);
        return p;
      });
    case Move::Kind::Permute:
      for (size_t i = 0; i < shape.size(); ++i)
        shape[i] = x.shape[static_cast<size_t>(move.order[i])];
      return picked(x, shape, [&](const Shape& p) {
        Shape old(p.size());
        for (size_t i = 0; i < p.size(); ++i) old[static_cast<size_t>(move.order[i])] = p[i];
        return old;
      });
    case Move::Kind::Flip:
      return picked(x, shape, [&](Shape p) {
        p[axis] = shape[axis] - 1 - p[axis];
        return p;
      });
    case Move::Kind::Diagonal:
      return picked(x, {std::min(shape[0], shape[1])},
                    [](const Shape& p) { return Shape{p[0], p[0]}; });
    default:
      break;
  }
  Places result = x;
  if (move.kind == Move::Kind::Reshape) result.shape = move.shape;
  if (move.kind == Move::Kind::Unsqueeze) result.shape.insert(result.shape.begin() + move.axis, 1);
  if (move.kind == Move::Kind::Detach) result.is_detached = true;
  return result;
}

std::vector<Action> make(uint32_t seed, const std::vector<Shape>& roots, const Options& options) {
  return Maker(seed, roots, options).make();
}

void perform(const std::vector<Action>& actions, std::vector<Tensor>& tensors, const Tensor& leaf) {
  using Kind = Action::Kind;
  for (const Action& action : actions) {
    if (action.kind == Kind::View) {
      tensors.push_back(moved(tensors[action.of], action.move));
      continue;
    }
    Tensor& x = tensors[action.of];
    switch (action.kind) {
      case Kind::Assign:
        x.assign(action.number);
        break;
      case Kind::Add:
        x += action.number;
        break;
      case Kind::Multiply:
        x *= action.number;
        break;
      case Kind::AddView:
        x += tensors[action.other] * action.number;
        break;
      case Kind::SetItem:
        x[Slice(action.begin, action.begin + 1)] = action.number;
        break;
      case Kind::AddLeaf:
        x += leaf[action.begin] * action.number;
        break;
      case Kind::SetLeaf:
        x.assign(leaf[action.begin]);
        break;
      case Kind::Realize:
        x.realize();
        break;
      default:
        x = Tensor();
    }
  }
}

void perform(const std::vector<Action>& actions, std::vector<Places>& places,
             const std::vector<double>& leaf) {
  using Kind = Action::Kind;
  for (const Action& action : actions) {
    if (action.kind == Kind::View) {
      places.push_back(moved(places[action.of], action.move));
      continue;
    }
    const Places x = places[action.of];
    std::vector<Element> others;  // read before any is written
    for (size_t i = 0; action.kind == Kind::AddView && i < x.at.size(); ++i)
      others.push_back(places[action.other].element(i));
    const size_t row = x.shape.empty() ? 1 : x.at.size() / static_cast<size_t>(x.shape[0]);
    const auto begin = static_cast<size_t>(action.begin);
    for (size_t i = 0; i < x.at.size(); ++i) {
      Element e = x.element(i);
      switch (action.kind) {
        case Kind::Assign:
          e = {action.number};
          break;
        case Kind::Add:
          e.value += action.number;
          break;
        case Kind::Multiply:
          e.value *= action.number;
          for (double& slope : e.slope) slope *= action.number;
          break;
        case Kind::AddView:
          e.value += others[i].value * action.number;
          for (size_t k = 0; k < kLeaf; ++k) e.slope[k] += others[i].slope[k] * action.number;
          break;
        case Kind::SetItem:
          if (i / row != begin) continue;
          e = {action.number};
          break;
        case Kind::AddLeaf:
          e.value += leaf[begin] * action.number;
          e.slope[begin] += action.number;
          break;
        case Kind::SetLeaf:
          e = {leaf[begin]};
          e.slope[begin] = 1.0;
          break;
        default:
          continue;
      }
      x.set(i, e);
    }
    if (action.kind == Kind::Drop) places[action.of] = {};
  }
}

std::vector<bool> detached(const std::vector<Places>& places) {
  std::vector<bool> result;
  for (const Places& each : places) result.push_back(each.is_detached);
  return result;
}

Tensor weighted_sum(const std::vector<Tensor>& tensors, const std::vector<bool>& is_detached) {
  Tensor sum = 0.0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || is_detached[i]) continue;
    const int64_t count = tensors[i].numel();
    const Tensor weights = Tensor::arange(count, DType::F64) + static_cast<double>(i + 1);
    sum = sum + (tensors[i] * weights.reshape(tensors[i].shape())).sum();
  }
  return sum;
}

Element weighted_sum(const std::vector<Places>& places) {
  Element sum;
  for (size_t n = 0; n < places.size(); ++n)
    for (size_t i = 0; i < places[n].at.size(); ++i) {
      if (places[n].is_detached) break;
      const Element e = places[n].element(i);
      const double weight = static_cast<double>(i + n + 1);
      sum.value += e.value * weight;
      for (size_t k = 0; k < kLeaf; ++k) sum.slope[k] += e.slope[k] * weight;
    }
  return sum;
}

std::string to_string(const std::vector<Action>& actions) {
  static constexpr const char* kKinds[] = {"view",     "assign",  "add",      "multiply",
                                           "add view", "setitem", "add leaf", "set leaf",
                                           "realize",  "drop"};
  static constexpr const char* kMoves[] = {"slice", "select",    "permute",  "reshape",
                                           "flip",  "unsqueeze", "diagonal", "detach"};
  std::string text;
  for (const Action& a : actions) {
    text += fmt::format("  {} of {}", kKinds[static_cast<size_t>(a.kind)], a.of);
    if (a.kind == Action::Kind::View)
      text += fmt::format(": {} axis {}, {}:{}:{}, shape ({}), order ({})",
                          kMoves[static_cast<size_t>(a.move.kind)], a.move.axis, a.move.begin,
                          a.move.end, a.move.step, fmt::join(a.move.shape, ", "),
                          fmt::join(a.move.order, ", "));
    else
      text += fmt::format(" (other {}, number {}, begin {})", a.other, a.number, a.begin);
    text += "\n";
  }
  return text;
}

}  // namespace plugrad::view_program
