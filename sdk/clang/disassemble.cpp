// Disassembles machine code into readable text.
#include <llvm-c/Disassembler.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <memory>

#include "clang/backend.h"
#include "clang/compile.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::clang_component {
namespace {

using llvm::object::ObjectFile;

[[noreturn]] void refuse(llvm::Error error) {
  throw sdk::StatusError(PGR_STATUS_BAD_BINARY, "disassemble: " + llvm::toString(std::move(error)));
}

template <typename T>
T value_of(llvm::Expected<T> expected) {
  if (!expected) refuse(expected.takeError());
  return std::move(*expected);
}

std::string hex_offset(uint64_t offset) {
  char text[24];
  std::snprintf(text, sizeof text, "%6llx: ", static_cast<unsigned long long>(offset));
  return text;
}

void append_function(LLVMDisasmContextRef disassembler, llvm::StringRef name, llvm::StringRef code,
                     std::string& out) {
  out += name.str() + ":\n";
  char text[256];
  for (uint64_t at = 0; at < code.size();) {
    auto* bytes = reinterpret_cast<uint8_t*>(const_cast<char*>(code.data())) + at;
    const size_t length =
        LLVMDisasmInstruction(disassembler, bytes, code.size() - at, at, text, sizeof text);
    out += hex_offset(at) + (length ? text : "\t(bad)") + "\n";
    at += std::max<size_t>(length, 1);
  }
}

}  // namespace

std::string disassemble_object(std::string_view object) {
  initialize_target(Language::C);
  const llvm::StringRef bytes(object.data(), object.size());
  const auto file =
      value_of(ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "object")));
  const std::unique_ptr<void, decltype(&LLVMDisasmDispose)> disassembler(
      LLVMCreateDisasm(file->makeTriple().str().c_str(), nullptr, 0, nullptr, nullptr),
      LLVMDisasmDispose);
  sdk::require(disassembler != nullptr, PGR_STATUS_UNSUPPORTED, "no disassembler for this object");
  LLVMSetDisasmOptions(disassembler.get(), LLVMDisassembler_Option_AsmPrinterVariant);
  std::string out;
  for (const llvm::object::ELFSymbolRef symbol : file->symbols()) {
    if (value_of(symbol.getType()) != llvm::object::SymbolRef::ST_Function) continue;
    const auto section = value_of(symbol.getSection());
    if (section == file->section_end()) continue;
    const llvm::StringRef code = value_of(section->getContents());
    const uint64_t begin = std::min<uint64_t>(value_of(symbol.getAddress()), code.size());
    append_function(disassembler.get(), value_of(symbol.getName()),
                    code.substr(begin, symbol.getSize()), out);
  }
  return out;
}

}  // namespace plugrad::clang_component
