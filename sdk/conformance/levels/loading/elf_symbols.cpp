#include "conformance/levels/loading/elf_symbols.h"

#include <stdexcept>

#include "conformance/plugin/elf_file.h"

namespace plugrad::conformance {

LibrarySymbols read_symbols(const std::string& path) {
  const ElfFile file(path);
  LibrarySymbols out;
  const Elf64_Shdr symbols = file.section(SHT_DYNSYM);
  if (symbols.sh_size == 0) throw std::runtime_error(path + " has no dynamic symbols");
  const Elf64_Shdr names = file.section_number(symbols.sh_link);
  for (const auto& symbol : file.table<Elf64_Sym>(symbols)) {
    const uint32_t binding = ELF64_ST_BIND(symbol.st_info);
    const uint32_t visibility = ELF64_ST_VISIBILITY(symbol.st_other);
    if (symbol.st_name == 0 || binding == STB_LOCAL) continue;
    const std::string name = file.text(names, symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF)
      (binding == STB_WEAK ? out.imported_weak : out.imported).push_back(name);
    else if (visibility == STV_DEFAULT || visibility == STV_PROTECTED)
      out.exported.push_back(name);
  }
  const Elf64_Shdr dynamic = file.section(SHT_DYNAMIC);
  if (dynamic.sh_size == 0) return out;
  const Elf64_Shdr strings = file.section_number(dynamic.sh_link);
  for (const auto& entry : file.table<Elf64_Dyn>(dynamic))
    if (entry.d_tag == DT_NEEDED) out.needed.push_back(file.text(strings, entry.d_un.d_val));
  return out;
}

std::string function_at(const std::string& path, uint64_t address) {
  try {
    const ElfFile file(path);
    const Elf64_Shdr symbols = file.section(SHT_SYMTAB);
    if (symbols.sh_size == 0) return "";
    const Elf64_Shdr names = file.section_number(symbols.sh_link);
    for (const auto& symbol : file.table<Elf64_Sym>(symbols))
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && address >= symbol.st_value &&
          address - symbol.st_value < symbol.st_size)
        return file.text(names, symbol.st_name);
  } catch (const std::exception&) {
    // The frame keeps its offset.
  }
  return "";
}

}  // namespace plugrad::conformance
