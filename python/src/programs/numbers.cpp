// Numbers that stand for Python objects in the key of a recorded call.
#include "arguments.h"
#include "programs/tree.h"

namespace plugrad::python {

struct Numbers::Weak {
  struct Entry {
    nb::object reference;
    uint64_t number;
  };
  std::unordered_map<PyObject*, Entry> entries;
  uint64_t last = 0;
};

uint64_t Numbers::of_kept(nb::handle object) {
  const auto [found, is_new] = kept_.try_emplace(object.ptr(), objects_.size());
  if (is_new) objects_.push_back(nb::borrow(object));
  return found->second;
}

std::optional<uint64_t> Numbers::of_weak(nb::handle object, std::function<void(uint64_t)> gone) {
  if (!weak_) weak_ = std::make_shared<Weak>();
  if (const auto found = weak_->entries.find(object.ptr()); found != weak_->entries.end())
    return found->second.number;
  PyObject* const key = object.ptr();
  const uint64_t number = weak_->last + 1;
  const auto forget = [weak = std::weak_ptr(weak_), key, number, gone](nb::handle) {
    if (const std::shared_ptr<Weak> alive = weak.lock()) alive->entries.erase(key);
    if (gone) gone(number);
  };
  nb::object reference = nb::steal(PyWeakref_NewRef(key, nb::cpp_function(forget).ptr()));
  if (!reference.is_valid()) {
    PyErr_Clear();
    return {};
  }
  weak_->last = number;
  weak_->entries.emplace(key, Weak::Entry{std::move(reference), number});
  return number;
}

uint64_t Numbers::of_key(nb::handle key) {
  if (!keys_.is_valid()) keys_ = nb::dict();
  const nb::tuple typed = nb::make_tuple(key.type(), key);
  if (PyObject* const known = PyDict_GetItemWithError(keys_.ptr(), typed.ptr()))
    return nb::cast<uint64_t>(nb::handle(known));
  if (PyErr_Occurred()) throw nb::python_error();
  const uint64_t number = objects_.size();
  objects_.push_back(nb::borrow(key));
  keys_[typed] = number;
  return number;
}

void Numbers::clear() {
  keys_.reset();
  kept_.clear();
  weak_.reset();
  const std::vector<nb::object> dropped = std::exchange(objects_, {});
}

}  // namespace plugrad::python
