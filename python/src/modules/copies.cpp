// Copies of tensors and layers: copy.copy and copy.deepcopy.

#include "bind.h"
#include "modules/modules.h"

namespace plugrad::python {

namespace {

/// The key of copy.deepcopy's memory for the copies of one tensor.
nb::tuple key_of(const Tensor& tensor) {
  return nb::make_tuple("plugrad.Tensor", reinterpret_cast<uintptr_t>(nn::identity_of(tensor)));
}

// The memory's values are a copy and its original, which keeps the key unique.

Tensor copy_of_tensor(const Tensor& tensor) {
  Tensor copy = tensor.detach().clone();
  if (tensor.requires_grad()) copy.requires_grad_();
  return copy;
}

}  // namespace

void share_copies(const std::vector<const Tensor*>& originals,
                  const std::vector<const Tensor*>& copies, nb::dict memo) {
  for (size_t i = 0; i < originals.size(); ++i) {
    if (!originals[i]->defined()) continue;
    const nb::tuple key = key_of(*originals[i]);
    if (memo.contains(key))
      *const_cast<Tensor*>(copies[i]) = nb::cast<Tensor>(memo[key][0]);
    else
      memo[key] = nb::make_tuple(*copies[i], *originals[i]);
  }
}

nb::object allocate_like(nb::handle original) {
  return nb::inst_alloc(original.type());
}

void finish_copy(nb::handle copy, nb::handle original, nb::handle memo) {
  nb::inst_mark_ready(copy);
  const nb::object attributes = nb::getattr(original, "__dict__", nb::none());
  if (attributes.is_none()) return;
  nb::dict copied = nb::borrow<nb::dict>(attributes);
  if (!memo.is_none()) {
    memo[nb::int_(reinterpret_cast<uintptr_t>(original.ptr()))] = copy;  // for cycles
    copied = nb::borrow<nb::dict>(nb::module_::import_("copy").attr("deepcopy")(copied, memo));
  }
  copy.attr("__dict__").attr("update")(copied);
}

void bind_copies() {
  const nb::handle tensor = nb::type<Tensor>();
  nb::setattr(tensor, "__deepcopy__",
              nb::cpp_function(
                  [](nb::handle self, nb::dict memo) {
                    const Tensor& original = object_of<Tensor>(self);
                    const nb::tuple key = key_of(original);
                    if (memo.contains(key)) return nb::borrow(memo[key][0]);
                    const nb::object copy = nb::cast(copy_of_tensor(original));
                    memo[key] = nb::make_tuple(copy, original);
                    return copy;
                  },
                  nb::name("__deepcopy__"),
                  nb::sig("def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor"),
                  nb::scope(tensor), nb::is_method()));
  nb::setattr(tensor, "__copy__",
              nb::cpp_function([](const Tensor& self) { return self; }, nb::name("__copy__"),
                               nb::scope(tensor), nb::is_method()));
}

}  // namespace plugrad::python
