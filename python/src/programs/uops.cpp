// Nodes of the graph, patterns, and rules whose right sides are functions of Python.
#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "plugrad/uop.h"
#include "programs/callbacks.h"
#include "released.h"

namespace plugrad::python {

namespace {

using ir::Match;
using ir::Pattern;
using ir::PatternMatcher;
using ir::Rule;
using ir::UOp;

/// Calls `use` with a number of Python as bool, int64_t or double. Returns false for other objects.
/// Errors: OverflowError for an integer beyond 64 bits.
template <class Use>
bool with_number(nb::handle object, Use&& use) {
  PyObject* const o = object.ptr();
  if (PyBool_Check(o)) {
    use(o == Py_True);
  } else if (PyLong_Check(o)) {
    const long long value = PyLong_AsLongLong(o);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    use(static_cast<int64_t>(value));
  } else if (PyFloat_Check(o)) {
    use(PyFloat_AsDouble(o));
  } else {
    return false;
  }
  return true;
}

/// A node or pattern, or a number in its place; its errors wait for get().
template <class Node>
struct OrNumber {
  Node get() const {
    if (error) std::rethrow_exception(error);
    return *value;
  }
  std::optional<Node> value;
  std::exception_ptr error;
};

template <class Node>
std::optional<OrNumber<Node>> or_number(nb::handle object) {
  OrNumber<Node> made;
  if (nb::isinstance<Node>(object)) {
    made.value = nb::cast<Node>(object);
    return made;
  }
  try {
    if (!with_number(object, [&](auto number) { made.value = Node(number); })) return {};
  } catch (...) {
    made.error = std::current_exception();
  }
  return made;
}

using UOpLike = OrNumber<UOp>;
using PatternLike = OrNumber<Pattern>;

template <class Node>
std::vector<Node> list_of(const std::vector<OrNumber<Node>>& given) {
  std::vector<Node> list;
  for (const OrNumber<Node>& each : given) list.push_back(each.get());
  return list;
}

nb::object uop_dtype(const UOp& node) {
  const DType dtype = node.dtype();
  return dtype == DType::Void ? nb::none() : object_of_dtype(dtype);
}

}  // namespace

}  // namespace plugrad::python

namespace nanobind::detail {
template <>
struct type_caster<plugrad::python::UOpLike>
    : ArgumentCaster<plugrad::python::UOpLike, plugrad::python::or_number<plugrad::ir::UOp>> {
  static constexpr auto Name = const_name("UOp | float");
};
template <>
struct type_caster<plugrad::python::PatternLike>
    : ArgumentCaster<plugrad::python::PatternLike,
                     plugrad::python::or_number<plugrad::ir::Pattern>> {
  static constexpr auto Name = const_name("Pattern | float");
};
}  // namespace nanobind::detail

namespace plugrad::python {

namespace {

/// A binary operator of nodes or patterns, with numbers on either side.
template <class Node, class Compute>
void bind_binary(nb::class_<Node>& made, const char* type, const char* name, Compute compute) {
  const std::string side = std::string(type) + " | float) -> " + type;
  made.def(("__" + std::string(name) + "__").c_str(),
           [compute](const Node& self, const OrNumber<Node>& other) {
             return compute(self, other.get());
           },
           "other"_a, nb::is_operator(),
           nb::sig(("def __" + std::string(name) + "__(self, other: " + side).c_str()));
  if (std::string_view(name) == "lt") return;
  made.def(("__r" + std::string(name) + "__").c_str(),
           [compute](const Node& self, const OrNumber<Node>& other) {
             return compute(other.get(), self);
           },
           "other"_a, nb::is_operator(),
           nb::sig(("def __r" + std::string(name) + "__(self, other: " + side).c_str()));
}

template <class Node>
void bind_algebra(nb::class_<Node>& made, const char* type) {
  bind_binary(made, type, "add", [](const Node& a, const Node& b) { return a + b; });
  bind_binary(made, type, "sub", [](const Node& a, const Node& b) { return a - b; });
  bind_binary(made, type, "mul", [](const Node& a, const Node& b) { return a * b; });
  bind_binary(made, type, "truediv", [](const Node& a, const Node& b) { return a / b; });
  bind_binary(made, type, "floordiv", [](const Node& a, const Node& b) { return a / b; });
  bind_binary(made, type, "mod", [](const Node& a, const Node& b) { return a % b; });
  bind_binary(made, type, "lt", [](const Node& a, const Node& b) { return a < b; });
  made.def(
      "__gt__", [](const Node& self, const OrNumber<Node>& other) { return other.get() < self; },
      "other"_a, nb::is_operator(),
      nb::sig(("def __gt__(self, other: " + std::string(type) + " | float) -> " + type).c_str()));
  made.def(
      "__neg__", [](const Node& self) { return -self; },
      nb::sig(("def __neg__(self) -> " + std::string(type)).c_str()));
}

void bind_building(nb::class_<UOp>& made) {
  made.def(
      "__init__", [](UOp* self, const UOpLike& value) { new (self) UOp(value.get()); }, "value"_a,
      nb::sig("def __init__(self, value: float | UOp) -> None"), doc("UOp::__init__"));
  made.def_static(
      "constant",
      [](nb::handle value, std::optional<DType> dtype) {
        UOp node;
        if (!with_number(value, [&](auto number) { node = UOp::constant(number, dtype); }))
          throw nb::type_error("[constant] the value is a number");
        return node;
      },
      "value"_a, "dtype"_a = nb::none(),
      nb::sig("def constant(value: float, dtype: DTypeLike | None = None) -> UOp"),
      "A number as a node. Without a dtype it is weak, like a number next to a tensor: it takes "
      "the "
      "dtype of the node that it meets. Errors: OverflowError for integers beyond 64 bits.");
  made.def_static(
      "make",
      [](std::string_view op, const std::vector<UOpLike>& sources, std::optional<DType> dtype,
         const std::vector<int64_t>& arg) { return UOp::make(op, list_of(sources), dtype, arg); },
      "op"_a, "sources"_a, "dtype"_a = nb::none(), "arg"_a = std::vector<int64_t>(),
      nb::sig("def make(op: str, sources: Sequence[UOp | float], dtype: DTypeLike | None = None, "
              "arg: int | Sequence[int] = ()) -> UOp"),
      "Any op by its printed name (\"add\", \"where\", \"exp2\", \"reshape\", …). `dtype` is "
      "needed if "
      "it does not follow from the sources; `arg` is the op's number or list. Errors: UserError "
      "for "
      "a node that the IR does not allow.");
  made.def("cast", &UOp::cast, "dtype"_a, nb::sig("def cast(self, dtype: DTypeLike) -> UOp"),
           "The value in another dtype.");
  made.def(
      "where",
      [](const UOp& self, const UOpLike& yes, const UOpLike& no) {
        return self.where(yes.get(), no.get());
      },
      "yes"_a, "no"_a, nb::sig("def where(self, yes: UOp | float, no: UOp | float) -> UOp"),
      doc("UOp::where"));
  made.def_static("parse", &UOp::parse, "text"_a, doc("UOp::parse"));
}

void bind_kernel_building(nb::class_<UOp>& made) {
  made.def_static("range", &UOp::range, "size"_a, "axis"_a, "reduces"_a = false, doc("UOp::range"));
  made.def_static(
      "param", &UOp::param, "slot"_a, "dtype"_a, "elem_count"_a, "written"_a,
      nb::sig("def param(slot: int, dtype: DTypeLike, elem_count: int, written: bool) -> "
              "UOp"),
      doc("UOp::param"));
  made.def(
      "load", [](const UOp& self, const UOpLike& index) { return self.load(index.get()); },
      "index"_a, nb::sig("def load(self, index: UOp | int) -> UOp"),
      "The element of this buffer at an index.");
  made.def(
      "store",
      [](const UOp& self, const UOpLike& index, const UOpLike& value) {
        return self.store(index.get(), value.get());
      },
      "index"_a, "value"_a, nb::sig("def store(self, index: UOp | int, value: UOp | float) -> UOp"),
      "A store of the value to this buffer.");
  made.def_static("sink", &UOp::sink, "stores"_a, nb::sig("def sink(stores: Sequence[UOp]) -> UOp"),
                  "The kernel of these stores.");
  made.def("reduce", &UOp::reduce, "op"_a, "ranges"_a,
           nb::sig("def reduce(self, op: str, ranges: Sequence[UOp]) -> UOp"), doc("UOp::reduce"));
}

void bind_looking(nb::class_<UOp>& made) {
  made.def_prop_ro("op", &UOp::op, "The op's name: \"add\".");
  made.def_prop_ro("dtype", uop_dtype, nb::sig("def dtype(self) -> dtype | None"),
                   "The dtype of the value; None without one, such as a store's.");
  made.def_prop_ro("sources", &UOp::sources, nb::sig("def sources(self) -> list[UOp]"),
                   "The nodes that this one is computed of.");
  made.def_prop_ro("arg", &UOp::arg, nb::sig("def arg(self) -> tuple[int, ...]"), doc("UOp::arg"));
  made.def_prop_ro("shape", &UOp::shape, nb::sig("def shape(self) -> tuple[int, ...]"),
                   doc("UOp::shape"));
  made.def_prop_ro("is_constant", &UOp::is_constant, "Whether it is a number.");
  made.def("integer", &UOp::integer, doc("UOp::integer"));
  made.def("number", &UOp::number,
           "Of a constant, as a float. Errors: ValueError when it is none.");
  made.def_prop_ro("size", &UOp::size, doc("UOp::size"));
  made.def("to_string", &UOp::to_string, doc("UOp::to_string"));
  made.def("__str__", &UOp::to_string);
  made.def("__repr__", [](const UOp& self) {
    std::string text = "<UOp " + self.op();
    if (self.dtype() != DType::Void) text += " " + std::string(name_of(self.dtype()));
    return text + to_string(self.shape()) + ", " + std::to_string(self.sources().size()) +
           " sources>";
  });
  made.def(
      "__eq__", [](const UOp& self, const UOp& other) { return self == other; },
      "other"_a.noconvert(), nb::is_operator(), nb::sig("def __eq__(self, other: object) -> bool"),
      "Whether both are one node.");
  made.def("__hash__", [](const UOp& self) {  // equal for equal nodes
    size_t hash = std::hash<std::string>()(self.op()) * 31 + static_cast<size_t>(self.dtype());
    for (const int64_t each : self.arg()) hash = hash * 31 + static_cast<size_t>(each);
    return static_cast<int64_t>(hash >> 2);
  });
  made.def("simplify", &UOp::simplify, "fast"_a = false, doc("UOp::simplify"));
  made.def("tensor", &UOp::tensor, nb::sig("def tensor(self) -> Tensor"), doc("UOp::tensor"));
}

void bind_uop_class(nb::module_& module) {
  nb::class_<UOp> made(module, "UOp", doc("UOp"));
  bind_building(made);
  bind_kernel_building(made);
  bind_looking(made);
  bind_algebra(made, "UOp");
  bind_binary(made, "UOp", "and", [](const UOp& a, const UOp& b) { return a & b; });
  bind_binary(made, "UOp", "or", [](const UOp& a, const UOp& b) { return a | b; });
  bind_binary(made, "UOp", "xor", [](const UOp& a, const UOp& b) { return a ^ b; });
}

void bind_pattern_class(nb::module_& module) {
  nb::class_<Pattern> made(module, "Pattern", doc("Pattern"));
  made.def(
      "__init__", [](Pattern* self, const PatternLike& value) { new (self) Pattern(value.get()); },
      "value"_a, nb::sig("def __init__(self, value: float | Pattern) -> None"),
      doc("Pattern::__init__"));
  made.def_static("any", &Pattern::any, "name"_a, doc("Pattern::any"));
  made.def_static("constant", &Pattern::constant, "name"_a, doc("Pattern::constant"));
  made.def_static(
      "op",
      [](std::string_view op, const std::vector<PatternLike>& sources, std::string name) {
        return Pattern::op(op, list_of(sources), std::move(name));
      },
      "op"_a, "sources"_a, "name"_a = "",
      nb::sig("def op(op: str, sources: Sequence[Pattern | float], name: str = \"\") -> Pattern"),
      doc("Pattern::op"));
  bind_algebra(made, "Pattern");
}

/// The node that a function of a rule returned; None is no match, a number takes the root's dtype.
UOp node_of_result(nb::handle result, const UOp& root, const std::string& name) {
  if (result.is_none()) return {};
  if (nb::isinstance<UOp>(result)) return nb::cast<UOp>(result);
  UOp node;
  const DType dtype = root.dtype();
  if (with_number(result, [&](auto number) { node = UOp::constant(number, dtype); })) return node;
  throw nb::type_error(("[" + name +
                        "] the function of a rule returns a UOp, a number, or None "
                        "where it does not apply, not " +
                        nb::cast<std::string>(result.type().attr("__name__")))
                           .c_str());
}

/// A PatternMatcher, and the functions of its rules, which it calls while it is alive.
class Matcher {
 public:
  explicit Matcher(nb::handle rules) : Matcher(std::vector<nb::object>(), rules) {}

  /// None where no rule matches.
  std::optional<UOp> apply(const UOp& node) const {
    UOp result = matcher_.apply(node);
    return result.defined() ? std::optional(std::move(result)) : std::nullopt;
  }
  UOp rewrite(const UOp& node) const { return matcher_.rewrite(node); }

  template <class Visit>
  int visit(Visit&& visit) {
    for (const nb::object& function : functions_)
      if (const int stop = visit(function)) return stop;
    return 0;
  }
  void clear() {}  // tuples and functions of a cycle are cleared themselves

 private:
  Matcher(std::vector<nb::object> functions, nb::handle rules)
      : functions_(std::move(functions)), matcher_(made_of(rules, functions_)) {}

  static PatternMatcher made_of(nb::handle rules, std::vector<nb::object>& functions) {
    std::vector<Rule> list;
    for (const nb::handle rule : rules) list.push_back(rule_of(rule, functions));
    return PatternMatcher(std::move(list));
  }

  static Rule rule_of(nb::handle given, std::vector<nb::object>& functions) {
    const bool is_rule = PyTuple_Check(given.ptr()) && nb::len(given) >= 2 && nb::len(given) <= 3;
    if (!is_rule || !nb::isinstance<Pattern>(nb::object(given[0])))
      throw nb::type_error(
          "[PatternMatcher] a rule is (pattern, function or pattern), or "
          "(pattern, function or pattern, name)");
    const nb::object right(given[1]);
    std::string name = nb::len(given) > 2 ? nb::cast<std::string>(nb::object(given[2])) : "rule";
    const Pattern left = nb::cast<Pattern>(nb::object(given[0]));
    if (PyCallable_Check(right.ptr())) {
      functions.push_back(right);
      const auto call = [function = right.ptr(), name](const Match& match) {
        const CalledBack called;
        return node_of_result(nb::handle(function)(match), match.root(), name);
      };
      return Rule(left, call, name);
    }
    if (const auto pattern = or_number<Pattern>(right)) return Rule(left, pattern->get(), name);
    throw nb::type_error("[PatternMatcher] the right side of a rule is a function or a pattern");
  }

  std::vector<nb::object> functions_;
  PatternMatcher matcher_;
};

void bind_matching(nb::module_& module) {
  nb::class_<Match> match(module, "Match", doc("Match"));
  match.def(
      "__getitem__", [](const Match& self, std::string_view name) { return self[name]; }, "name"_a,
      nb::sig("def __getitem__(self, name: str) -> UOp"), doc("Match::operator[]"));
  match.def_prop_ro(
      "root", [](const Match& self) { return self.root(); }, nb::sig("def root(self) -> UOp"),
      doc("Match::root"));
  nb::class_<Matcher> made(
      module, "PatternMatcher", nb::type_slots(gc_slots<Matcher>),
      "Rules, tried in order: pairs of a pattern and a function of the Match, which returns a UOp, "
      "a "
      "number, or None where the rule does not apply; or of two patterns. A third part is the "
      "rule's "
      "name in messages. Both sides have one dtype. A pattern has at most 14 nodes and 10 names.");
  made.def(
      "__init__", [](Matcher* self, nb::handle rules) { new (self) Matcher(rules); }, "rules"_a,
      nb::sig("def __init__(self, rules: Sequence[tuple[Pattern, Any] | tuple[Pattern, Any, str]]) "
              "-> None"));
  made.def("apply", &Matcher::apply, "node"_a, nb::sig("def apply(self, node: UOp) -> UOp | None"),
           "The result of the first rule that matches the node itself; None when none does.");
  made.def("rewrite", &Matcher::rewrite, "node"_a, nb::sig("def rewrite(self, node: UOp) -> UOp"),
           doc("PatternMatcher::rewrite"));
}

}  // namespace

void bind_uop_methods(nb::class_<Tensor>& tensor) {
  tensor.def_prop_ro("uop", &Tensor::uop, nb::sig("def uop(self) -> UOp"), doc("Tensor::uop"));
}

void bind_uops(nb::module_& module) {
  bind_uop_class(module);
  bind_pattern_class(module);
  bind_matching(module);
}

}  // namespace plugrad::python
