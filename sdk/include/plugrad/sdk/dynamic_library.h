// SPDX-License-Identifier: Apache-2.0
// Opens a driver's library at run time, so that the plugin also loads without the driver and then
// reports no devices.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace plugrad::sdk {

class DynamicLibrary {
 public:
  // Tries the names in order. The library is never closed: drivers do not reliably support dlclose.
  explicit DynamicLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      if (reason_.empty()) reason_ = dlerror();
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  // The error of opening the first name.
  const std::string& reason() const { return reason_; }

  // Sets `function` to the symbol, or to nullptr (and returns false) if the library lacks it.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = handle_ ? reinterpret_cast<Function*>(dlsym(handle_, name)) : nullptr;
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string reason_;
};

}  // namespace plugrad::sdk
