#include "elf_loader.h"

#include <elf.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "plugrad/sdk/guard.h"

namespace plugrad::cpu_clang {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // within the range of 32-bit relative addresses
constexpr uint64_t kStubBytes = 16;                 // an address and a jump to it

[[noreturn]] void refuse(const std::string& what) {
  throw sdk::StatusError(PGR_STATUS_BAD_BINARY, "object: " + what);
}

uint64_t round_up(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

float greater(float a, float b) {
  return std::fmax(a, b);
}
float lesser(float a, float b) {
  return std::fmin(a, b);
}

__extension__ using Half = _Float16;
float widened(Half x) {
  return static_cast<float>(x);
}
Half narrowed(float x) {
  return static_cast<Half>(x);
}

// Runtime functions that compilers call implicitly: LLVM emits float selects between f16 values,
// and calls a conversion function if the processor lacks F16C.
const void* runtime_function(std::string_view name) {
  if (name == "memcpy") return reinterpret_cast<const void*>(&std::memcpy);
  if (name == "memmove") return reinterpret_cast<const void*>(&std::memmove);
  if (name == "memset") return reinterpret_cast<const void*>(&std::memset);
  if (name == "fmaxf") return reinterpret_cast<const void*>(&greater);
  if (name == "fminf") return reinterpret_cast<const void*>(&lesser);
  if (name == "__extendhfsf2") return reinterpret_cast<const void*>(&widened);
  if (name == "__truncsfhf2") return reinterpret_cast<const void*>(&narrowed);
  return nullptr;
}

}  // namespace

class ElfReader {
 public:
  explicit ElfReader(std::string_view bytes) : bytes_(bytes) {}

  std::unique_ptr<LoadedObject> load() {
    read_header();
    read_symbols();
    lay_out();
    map_memory();
    copy_sections();
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == SHT_RELA) relocate(section);
    seal();
    list_functions();
    return std::move(object_);
  }

 private:
  // A record at an offset of the file, bounds-checked.
  template <typename Record>
  Record at(uint64_t offset) const {
    Record record;
    if (offset > bytes_.size() || sizeof record > bytes_.size() - offset)
      refuse("a table reaches past the end of " + std::to_string(bytes_.size()) + " bytes");
    std::memcpy(&record, bytes_.data() + offset, sizeof record);
    return record;
  }
  std::string_view contents(const Elf64_Shdr& section) const {
    if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)
      refuse("a section reaches past the end");
    return bytes_.substr(section.sh_offset, section.sh_size);
  }
  bool is_loaded(size_t index) const {
    const Elf64_Shdr& section = sections_[index];
    return (section.sh_flags & SHF_ALLOC) && section.sh_size > 0;
  }

  void read_header() {
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_REL ||
        header.e_machine != EM_X86_64)
      refuse("not a relocatable x86-64 ELF object");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) refuse("section headers of an unknown size");
    for (uint64_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
  }

  void read_symbols() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      if (!symbols_.empty()) refuse("two symbol tables");
      if (section.sh_link >= sections_.size()) refuse("the symbol table has no names");
      names_ = contents(sections_[section.sh_link]);
      for (uint64_t i = 0; i < contents(section).size() / sizeof(Elf64_Sym); ++i)
        symbols_.push_back(at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym)));
    }
  }

  std::string_view name_of(const Elf64_Sym& symbol) const {
    if (symbol.st_name >= names_.size()) refuse("a symbol's name is outside the names");
    const std::string_view rest = names_.substr(symbol.st_name);
    const size_t end = rest.find('\0');
    if (end == std::string_view::npos) refuse("a symbol's name does not end");
    return rest.substr(0, end);
  }

  // Sections in sequence, then one slot for each symbol that a relocation may need.
  void lay_out() {
    uint64_t end = 0;
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      offsets_.push_back(0);
      if (!is_loaded(i)) continue;
      if (section.sh_flags & SHF_WRITE) refuse("kernels have no writable data");
      if (section.sh_type == SHT_NOBITS) refuse("a section without contents");
      if (section.sh_flags & SHF_TLS) refuse("kernels have no thread-local data");
      const uint64_t align = section.sh_addralign ? section.sh_addralign : 1;
      if (align > kPage || (align & (align - 1))) refuse("a section's alignment is unknown");
      end = round_up(end, align);
      offsets_[i] = end;
      end += contents(section).size();
      if (end > kMostBytes) refuse("larger than 1 GiB");
    }
    slots_offset_ = round_up(end, kStubBytes);
    if (symbols_.size() > (kMostBytes - slots_offset_) / kStubBytes) refuse("too many symbols");
    total_ = round_up(slots_offset_ + symbols_.size() * kStubBytes, kPage);
    if (total_ == 0) refuse("has no code");
  }

  void map_memory() {
    object_.reset(new LoadedObject());
    void* memory =
        ::mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sdk::require(memory != MAP_FAILED, PGR_STATUS_OUT_OF_HOST_MEMORY,
                 "cannot map " + std::to_string(total_) + " bytes for code");
    object_->memory_ = static_cast<char*>(memory);
    object_->bytes_ = total_;
  }

  void copy_sections() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (!is_loaded(i)) continue;
      const std::string_view bytes = contents(sections_[i]);
      std::memcpy(object_->memory_ + offsets_[i], bytes.data(), bytes.size());
    }
  }

  uint64_t base() const { return reinterpret_cast<uint64_t>(object_->memory_); }

  // The address of a symbol.
  uint64_t address(uint64_t index) const {
    if (index >= symbols_.size()) refuse("a relocation's symbol does not exist");
    const Elf64_Sym& symbol = symbols_[index];
    if (symbol.st_shndx == SHN_UNDEF) {
      const std::string_view name = name_of(symbol);
      const void* known = runtime_function(name);
      if (!known) refuse("uses \"" + std::string(name) + "\", which kernels may not call");
      return reinterpret_cast<uint64_t>(known);
    }
    if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
    if (symbol.st_shndx >= sections_.size() || !is_loaded(symbol.st_shndx))
      refuse("a symbol is in a section that is not loaded");
    if (symbol.st_value > sections_[symbol.st_shndx].sh_size)
      refuse("a symbol is outside its section");
    return base() + offsets_[symbol.st_shndx] + symbol.st_value;
  }

  // The slot holds the symbol's address, followed by "jmp *[slot]".
  uint64_t slot(uint64_t index) {
    const uint64_t target = address(index);
    char* memory = object_->memory_ + slots_offset_ + index * kStubBytes;
    const unsigned char jump[6] = {0xff, 0x25, 0xf2, 0xff, 0xff, 0xff};
    std::memcpy(memory, &target, sizeof target);
    std::memcpy(memory + 8, jump, sizeof jump);
    return reinterpret_cast<uint64_t>(memory);
  }

  void relocate(const Elf64_Shdr& table) {
    if (table.sh_info >= sections_.size()) refuse("relocations of no section");
    if (!is_loaded(table.sh_info)) return;
    for (uint64_t i = 0; i < contents(table).size() / sizeof(Elf64_Rela); ++i)
      apply(at<Elf64_Rela>(table.sh_offset + i * sizeof(Elf64_Rela)), table.sh_info);
  }

  void apply(const Elf64_Rela& entry, size_t section) {
    const uint64_t type = ELF64_R_TYPE(entry.r_info), symbol = ELF64_R_SYM(entry.r_info);
    const uint64_t width = type == R_X86_64_64 ? 8 : 4;
    const uint64_t size = sections_[section].sh_size;
    if (size < width || entry.r_offset > size - width)
      refuse("a relocation is outside its section");
    char* place = object_->memory_ + offsets_[section] + entry.r_offset;
    const uint64_t addend = static_cast<uint64_t>(entry.r_addend);
    const uint64_t here = reinterpret_cast<uint64_t>(place);
    switch (type) {
      case R_X86_64_NONE:
        return;
      case R_X86_64_64: {
        const uint64_t value = address(symbol) + addend;
        std::memcpy(place, &value, sizeof value);
        return;
      }
      case R_X86_64_PC32:
      case R_X86_64_PLT32: {
        const bool is_far = symbol < symbols_.size() && symbols_[symbol].st_shndx == SHN_UNDEF;
        return put_distance(place, (is_far ? slot(symbol) + 8 : address(symbol)) + addend - here);
      }
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        return put_distance(place, slot(symbol) + addend - here);
      default:
        refuse("relocation type " + std::to_string(type) + " is unknown");
    }
  }

  void put_distance(char* place, uint64_t distance) const {
    const int64_t value = static_cast<int64_t>(distance);
    if (value != static_cast<int32_t>(value)) refuse("a relocation reaches too far");
    const int32_t narrow = static_cast<int32_t>(value);
    std::memcpy(place, &narrow, sizeof narrow);
  }

  void seal() {
    sdk::require(::mprotect(object_->memory_, total_, PROT_READ | PROT_EXEC) == 0,
                 PGR_STATUS_PERMISSION_DENIED,
                 "the system does not let memory become executable (mprotect)");
  }

  void list_functions() {
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i];
      const bool is_function =
          ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL;
      if (!is_function || symbol.st_shndx == SHN_UNDEF) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): this is what loading means
      object_->functions_.emplace(name_of(symbol), reinterpret_cast<const void*>(address(i)));
    }
  }

  std::string_view bytes_, names_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<uint64_t> offsets_;
  uint64_t slots_offset_ = 0, total_ = 0;
  std::unique_ptr<LoadedObject> object_;
};

std::unique_ptr<LoadedObject> LoadedObject::load(std::string_view object) {
  return ElfReader(object).load();
}

LoadedObject::~LoadedObject() {
  if (memory_) ::munmap(memory_, bytes_);
}

const void* LoadedObject::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace plugrad::cpu_clang
