// Loads one x86-64 relocatable ELF object into executable memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace plugrad::cpu_clang {

// Code and constants in one mapping: readable and executable, not writable after loading.
class LoadedObject {
 public:
  // Throws StatusError (BAD_BINARY) if the object is damaged or refers to a symbol that kernels may
  // not use.
  static std::unique_ptr<LoadedObject> load(std::string_view object);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  // Address of a global function, or nullptr.
  const void* function(std::string_view name) const;
  const std::map<std::string, const void*, std::less<>>& functions() const { return functions_; }

 private:
  friend class ElfReader;
  LoadedObject() = default;
  char* memory_ = nullptr;
  uint64_t bytes_ = 0;
  std::map<std::string, const void*, std::less<>> functions_;
};

}  // namespace plugrad::cpu_clang
