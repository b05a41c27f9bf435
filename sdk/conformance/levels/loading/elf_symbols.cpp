#include "conformance/levels/loading/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string_view>

namespace plugrad::conformance {
namespace {

// Mapped, not read: libraries with debug information are large, and only a small part is needed.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts{};
    void* memory = MAP_FAILED;
    if (file >= 0 && ::fstat(file, &facts) == 0 && facts.st_size > 0)
      memory = ::mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (file >= 0) ::close(file);
    if (memory == MAP_FAILED) throw std::runtime_error(path + " cannot be read");
    bytes_ = {static_cast<const char*>(memory), static_cast<size_t>(facts.st_size)};
  }
  ~MappedFile() { ::munmap(const_cast<char*>(bytes_.data()), bytes_.size()); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(path), bytes_(file_.bytes()) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB)
      throw std::runtime_error(path + " is not a 64-bit little-endian ELF file");
  }

  // The first section of the type; size 0 if there is none.
  Elf64_Shdr section(uint32_t type) const {
    for (uint16_t i = 0; i < header_.e_shnum; ++i) {
      const auto section = section_number(i);
      if (section.sh_type == type) return section;
    }
    return {};
  }
  Elf64_Shdr section_number(uint32_t number) const {
    return at<Elf64_Shdr>(header_.e_shoff + uint64_t{number} * header_.e_shentsize);
  }
  template <typename Record>
  std::vector<Record> table(const Elf64_Shdr& section) const {
    std::vector<Record> records;
    for (uint64_t i = 0; i + sizeof(Record) <= section.sh_size; i += sizeof(Record))
      records.push_back(at<Record>(section.sh_offset + i));
    return records;
  }
  std::string text(const Elf64_Shdr& strings, uint64_t offset) const {
    const uint64_t from = strings.sh_offset + offset;
    if (from >= bytes_.size())
      throw std::runtime_error("the library is damaged: a name is outside");
    return std::string(bytes_.substr(from, bytes_.find('\0', from) - from));
  }

 private:
  template <typename Record>
  Record at(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(Record))
      throw std::runtime_error("the library is damaged: a table reaches past the end of the file");
    Record record;
    std::memcpy(&record, bytes_.data() + offset, sizeof record);
    return record;
  }

  MappedFile file_;
  std::string_view bytes_;
  Elf64_Ehdr header_{};
};

}  // namespace

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
