// The line of the Python program that calls plugrad.
#pragma once

#include <cstdint>

#include "bind.h"
#include "plugrad/source_scope.h"

namespace plugrad::python {

/// While it lives, errors and traces of the operations that this thread records name the line of
/// the innermost Python frame. Needs the interpreter's lock to begin and to end.
class Place {
 public:
  Place();
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  struct Traced;
  const std::uint32_t outer_;
  Traced* traced_ = nullptr;  // owned; a plain pointer, because most operations have none
};

/// Gives plugrad the places of errors.
void bind_places();

}  // namespace plugrad::python
