// Kernels: those that a tensor would run, and those that the user writes.
#include <nanobind/stl/array.h>

#include <sstream>

#include "bind.h"
#include "docs.h"
#include "place.h"
#include "programs/functions.h"

namespace plugrad::python {

namespace {

std::string kernel_text(const Kernel& kernel) {
  std::ostringstream out;
  out << kernel;
  return out.str();
}

/// A kernel's part of explain().
std::string kernel_line(const Kernel& kernel, size_t number) {
  std::ostringstream out;
  out << "\n---- kernel " << number << ": " << kernel.name() << " on " << kernel.device() << "\n"
      << kernel.flops() << " operations, " << kernel.work() << " work, " << kernel.bytes()
      << " bytes, axes";
  for (const KernelRange& range : kernel.ranges())
    out << " " << range.size << (range.reduces ? " (reduced)" : "");
  out << "\nschedule: " << (kernel.optimisations().empty() ? "none" : kernel.optimisations())
      << "\n\n"
      << kernel.ast();
  if (!kernel.source().empty()) out << "\n" << kernel.source();
  return out.str();
}

std::string kernels_as_text(const Tensor& tensor) {
  std::ostringstream out;
  const std::vector<Kernel> kernels = tensor.schedule();
  out << tensor << ": " << kernels.size() << (kernels.size() == 1 ? " kernel\n" : " kernels\n");
  size_t number = 0;
  for (const Kernel& kernel : kernels) out << kernel_line(kernel, ++number);
  return out.str();
}

void bind_kernel_class(nb::module_& module) {
  nb::class_<KernelRange> range(module, "KernelRange", doc("KernelRange"));
  range.def_ro("axis", &KernelRange::axis, "Unique in the kernel, smaller is further out.");
  range.def_ro("size", &KernelRange::size, "The number of iterations.");
  range.def_ro("reduces", &KernelRange::reduces, "Whether it is the loop of a reduction.");
  range.def("__repr__", [](const KernelRange& self) {
    return "KernelRange(axis=" + std::to_string(self.axis) + ", size=" + std::to_string(self.size) +
           (self.reduces ? ", reduces)" : ")");
  });
  nb::class_<Kernel> made(
      module, "Kernel",
      "One fused kernel as planned; from Tensor.schedule() also as compiled for "
      "its device. Printing shows all of it.");
  made.def_prop_ro("name", &Kernel::name, doc("Kernel::name"));
  made.def_prop_ro("colored_name", &Kernel::colored_name, doc("Kernel::colored_name"));
  made.def_prop_ro("device", &Kernel::device, "The device's name: \"CPU:0\".");
  made.def_prop_ro("source", &Kernel::source, doc("Kernel::source"));
  made.def_prop_ro("ast", &Kernel::ast, "The kernel's AST as textual IR.");
  made.def_prop_ro("optimisations", &Kernel::optimisations, doc("Kernel::optimisations"));
  made.def_prop_ro(
      "ranges",
      [](const Kernel& self) {
        return std::vector<KernelRange>(self.ranges().begin(), self.ranges().end());
      },
      nb::sig("def ranges(self) -> list[KernelRange]"), doc("Kernel::ranges"));
  made.def_prop_ro("work", &Kernel::work, doc("Kernel::work"));
  made.def_prop_ro("flops", &Kernel::flops, doc("Kernel::flops"));
  made.def_prop_ro("bytes", &Kernel::bytes, doc("Kernel::bytes"));
  made.def("__str__", kernel_text);
  made.def("__repr__", [](const Kernel& self) {
    return "<kernel " + self.name() + " on " + self.device() + ">";
  });
}

/// A UserKernel whose backward is a function of Python.
class PythonKernel {
 public:
  PythonKernel(UserKernel kernel, nb::object backward)
      : kernel_(std::move(kernel)), backward_(std::move(backward)) {}

  std::vector<Tensor> call(const std::vector<Tensor>& inputs,
                           const std::vector<KernelOutput>& outputs) const {
    UserKernel kernel = kernel_;
    if (!backward_.is_none()) kernel.backward = backward_of(kernel_.name, backward_, new_context());
    return kernel(inputs, outputs);
  }
  const UserKernel& kernel() const { return kernel_; }

  template <class Visit>
  int visit(Visit&& visit) {
    return visit(backward_);
  }
  void clear() { const nb::object backward = std::move(backward_); }

 private:
  UserKernel kernel_;
  nb::object backward_;
};

/// A shape, or a pair of a shape and a dtype.
KernelOutput output_of_object(nb::handle object) {
  const auto shape_of = [](nb::handle given) {
    const auto shape = integers_of_object(given);
    return shape ? std::optional(*shape) : std::nullopt;
  };
  if (const auto shape = shape_of(object)) return {*shape};
  if (nb::isinstance<KernelOutput>(object)) return nb::cast<KernelOutput>(object);
  if (PyTuple_Check(object.ptr()) && nb::len(object) == 2) {
    const auto shape = shape_of(nb::object(object[0]));
    const auto dtype = dtype_argument(nb::object(object[1]));
    if (shape && dtype) return {*shape, *dtype};
  }
  throw nb::type_error("[kernel] an output is a shape, or a pair of a shape and a dtype");
}

std::vector<KernelSource> sources_of(const nb::object& object) {
  std::vector<KernelSource> sources;
  if (object.is_none()) return sources;
  if (!PyDict_Check(object.ptr()))
    throw nb::type_error("[kernel] sources is a dictionary from device to text: {\"CPU\": \"…\"}");
  for (const auto& [device, text] : nb::borrow<nb::dict>(object))
    sources.push_back({nb::cast<std::string>(device), nb::cast<std::string>(text)});
  return sources;
}

void make_kernel(PythonKernel* self, std::string name, nb::object sources, nb::bytes ir,
                 std::optional<ir::UOp> ast, std::optional<std::array<uint64_t, 3>> groups,
                 std::array<uint32_t, 3> local, nb::object backward) {
  if (!backward.is_none() && !PyCallable_Check(backward.ptr()))
    throw nb::type_error("[kernel] backward is a function");
  const auto* const begin = static_cast<const std::byte*>(ir.data());
  UserKernel kernel{.name = std::move(name),
                    .sources = sources_of(sources),
                    .ir = {begin, begin + ir.size()},
                    .ast = ast.value_or(ir::UOp()),
                    .groups = groups.value_or(std::array<uint64_t, 3>()),
                    .local = local};
  new (self) PythonKernel(std::move(kernel), std::move(backward));
}

nb::object call_kernel(const PythonKernel& self, const TensorList& inputs, nb::handle outputs) {
  const Place place;
  std::vector<KernelOutput> list;
  const bool is_one = !PyList_Check(outputs.ptr());
  if (is_one)
    list.push_back(output_of_object(outputs));
  else
    for (const nb::handle output : outputs) list.push_back(output_of_object(output));
  const std::vector<Tensor> results = self.call(inputs.get(), list);
  return is_one ? nb::cast(results.at(0)) : nb::cast(results);
}

void bind_user_kernel(nb::module_& module) {
  nb::class_<PythonKernel> made(
      module, "UserKernel", nb::type_slots(gc_slots<PythonKernel>),
      ("A kernel that the user writes: `sources`, text for each device ({\"CPU\": \"void f(…\"}); "
       "`ir`, a block of docs/kernel-ir.md; or `ast`, a sink over stores (UOp.param). `backward` "
       "is called like that of plugrad.function. " +
       std::string(doc("UserKernel")))
          .c_str());
  made.def(
      "__init__", make_kernel, "name"_a, "sources"_a.none() = nb::none(), "ir"_a = nb::bytes("", 0),
      "ast"_a = nb::none(), "groups"_a = nb::none(), "local"_a = std::array{1, 1, 1},
      "backward"_a.none() = nb::none(),
      nb::sig("def __init__(self, name: str, sources: dict[str, str] | None = None, ir: bytes "
              "= b\"\", ast: UOp | None = None, groups: Sequence[int] | None = None, "
              "local: Sequence[int] = (1, 1, 1), backward: Callable[..., Any] | None = None) -> "
              "None"));
  made.def(
      "__call__", call_kernel, "inputs"_a, "outputs"_a,
      nb::sig("def __call__(self, inputs: Sequence[TensorLike], outputs: Any) -> Any"),
      ("`outputs`: a list of shapes, or of pairs of a shape and a dtype; without the list, for "
       "one output, the result is one tensor. " +
       std::string(doc("UserKernel::operator()")))
          .c_str());
  made.def_prop_ro(
      "name", [](const PythonKernel& self) { return self.kernel().name; }, "A C identifier.");
  made.def("__repr__",
           [](const PythonKernel& self) { return "<user kernel " + self.kernel().name + ">"; });
}

template <std::vector<Kernel> (Tensor::*get)() const>
std::vector<Kernel> kernels_of(const Tensor& self) {
  const Released released;
  return (self.*get)();
}

}  // namespace

void bind_kernel_methods(nb::class_<Tensor>& tensor) {
  tensor.def("schedule", kernels_of<&Tensor::schedule>,
             nb::sig("def schedule(self) -> list[Kernel]"), doc("Tensor::schedule"));
  for (const char* const name : {"kernelize", "kernels"})
    tensor.def(name, kernels_of<&Tensor::kernelize>,
               nb::sig(("def " + std::string(name) + "(self) -> list[Kernel]").c_str()),
               "The kernels of realize() before code generation: AST and ranges only.");
}

void bind_kernels(nb::module_& module) {
  bind_kernel_class(module);
  bind_user_kernel(module);
  module.def(
      "explain",
      [] {
        const Released released;
        return plugrad::explain();
      },
      doc("explain"));
  module.def(
      "explain",
      [](const Tensor& tensor) {
        const Released released;
        return kernels_as_text(tensor);
      },
      "tensor"_a,
      "The kernels that realize() would run, as text: axes, schedule, AST and source of each. "
      "Compiles them, but runs nothing. `plugrad explain` shows every stage of compilation.");
}

}  // namespace plugrad::python
