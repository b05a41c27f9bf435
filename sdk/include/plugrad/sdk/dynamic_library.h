// SPDX-License-Identifier: Apache-2.0
// A driver's library, opened when the plugin starts and not linked: where it is absent the plugin
// loads all the same, and says so by having no devices.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace plugrad::sdk {

class DynamicLibrary {
 public:
  // Tries the names in order. The library stays open as long as the process: drivers do not like
  // to be closed.
  explicit DynamicLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      if (reason_.empty()) reason_ = dlerror();
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  // Why the first of the names could not be opened.
  const std::string& reason() const { return reason_; }

  // Sets `function` to the symbol; nullptr and false where the library lacks it.
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
