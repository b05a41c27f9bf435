// The line of the Python program that records a tensor operation.
#pragma once

#include "plugrad/source_scope.h"

namespace plugrad::python {

/// While it lives, a trace names the calling Python line. Costs one test when no trace is on.
class Place {
 public:
  Place() {
    if (records_sources()) [[unlikely]]
      enter();
  }
  ~Place() {
    if (frame_) [[unlikely]]
      leave();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  struct Frame;
  void enter();
  void leave();
  Frame* frame_ = nullptr;  // owned; a plain pointer, because most operations have none
};

}  // namespace plugrad::python
