// Reads ELF64, little endian, by the gABI: file header, program headers, PT_NOTE segments. Ignores
// section headers, which a stripped library lacks.
#include "runtime/discovery/elf_manifest.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::runtime {
namespace {

#if defined(__x86_64__)
constexpr unsigned kHostMachine = EM_X86_64;
constexpr const char* kHostName = "x86-64";
#elif defined(__aarch64__)
constexpr unsigned kHostMachine = EM_AARCH64;
constexpr const char* kHostName = "AArch64";
#else
#error "which ELF machine is this?"
#endif

constexpr std::uint64_t kMostSegments = 256;
constexpr std::uint64_t kMostNoteBytes = 2 << 20;  // in one segment
constexpr std::size_t kMostNotes = 1024;

bool fits(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
  return size <= whole && offset <= whole - size;
}

template <class Record>
bool read_record(const ByteSource& file, std::uint64_t offset, Record& out) {
  return fits(offset, sizeof out, file.size) &&
         file.read(offset, std::as_writable_bytes(std::span(&out, 1)));
}

// Empty, or why this process cannot open a library with this header.
std::string header_refusal(const Elf64_Ehdr& h) {
  const unsigned char* id = h.e_ident;
  if (std::memcmp(id, ELFMAG, SELFMAG) != 0) return "it is not a library: it is no ELF file";
  if (id[EI_CLASS] == ELFCLASS32) return "it is a 32-bit library; this program is 64-bit";
  if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB || id[EI_VERSION] != EV_CURRENT)
    return "it is an ELF file, but none of 64 bits and little endian";
  if (h.e_type != ET_DYN)
    return fmt::format("it is an ELF file of type {}, not a shared library", h.e_type);
  if (h.e_machine != kHostMachine)
    return fmt::format("it is built for ELF machine {}; this program for {} ({})", h.e_machine,
                       kHostMachine, kHostName);
  if (h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum == 0 || h.e_phnum > kMostSegments)
    return fmt::format("its ELF header is damaged: {} program headers of {} bytes", h.e_phnum,
                       h.e_phentsize);
  return "";
}

// Whatever dlopen maps must be in the file: access beyond its end would end the process.
std::string segments_refusal(const std::vector<Elf64_Phdr>& segments, std::uint64_t size) {
  bool loads = false, dynamic = false;
  for (const Elf64_Phdr& p : segments) {
    loads |= p.p_type == PT_LOAD;
    dynamic |= p.p_type == PT_DYNAMIC;
    bool read = p.p_type == PT_LOAD || p.p_type == PT_DYNAMIC || p.p_type == PT_NOTE;
    if (read && !fits(p.p_offset, p.p_filesz, size))
      return fmt::format("it is truncated: it has {} bytes, and a segment of {} starts at {}", size,
                         p.p_filesz, p.p_offset);
    if (p.p_type == PT_LOAD && p.p_filesz > p.p_memsz)
      return "its ELF program headers are damaged: a segment is larger in the file than in memory";
  }
  if (!loads || !dynamic) return "it is an ELF file with nothing to load: not a shared library";
  return "";
}

std::uint64_t aligned(std::uint64_t offset, std::uint64_t align) {
  return (offset + align - 1) / align * align;
}

// The notes of one segment. Offsets stay below kMostNoteBytes plus checked 32-bit sizes, so sums do
// not overflow.
class NoteReader {
 public:
  NoteReader(std::span<const std::byte> bytes, std::uint64_t align)
      : bytes_(bytes), align_(align) {}

  // The text of the next plugrad note; nothing at the end, or if a note exceeds the segment.
  std::optional<std::string> next() {
    while (count_++ < kMostNotes && fits(at_, sizeof(Elf64_Nhdr), bytes_.size())) {
      Elf64_Nhdr note;
      std::memcpy(&note, bytes_.data() + at_, sizeof note);
      std::uint64_t name = at_ + sizeof note;
      std::uint64_t text = aligned(name + note.n_namesz, align_);
      if (!fits(text, note.n_descsz, bytes_.size())) return std::nullopt;
      at_ = aligned(text + note.n_descsz, align_);
      if (note.n_type == PGR_NOTE_TYPE && view(name, note.n_namesz) == kName)
        return without_zeros(view(text, note.n_descsz));
    }
    return std::nullopt;
  }

 private:
  static constexpr std::string_view kName{PGR_NOTE_NAME, sizeof PGR_NOTE_NAME};  // with its zero

  std::string_view view(std::uint64_t at, std::uint64_t size) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, size};
  }
  // The macro's text ends with a zero.
  static std::string without_zeros(std::string_view text) {
    while (text.ends_with('\0')) text.remove_suffix(1);
    return std::string(text);
  }

  std::span<const std::byte> bytes_;
  std::uint64_t align_, at_ = 0;
  std::size_t count_ = 0;
};

void read_notes(const ByteSource& file, const Elf64_Phdr& segment, LibraryFile& out) {
  if (segment.p_filesz > kMostNoteBytes) {
    out.refusal = fmt::format("its ELF notes have {} bytes; at most {} are read", segment.p_filesz,
                              kMostNoteBytes);
    return;
  }
  std::vector<std::byte> bytes(segment.p_filesz);
  if (!file.read(segment.p_offset, bytes)) {
    out.refusal = "its ELF notes cannot be read";
    return;
  }
  NoteReader notes(bytes, segment.p_align == 8 ? 8 : 4);
  while (std::optional<std::string> text = notes.next()) {
    // Linkers may list one note under two program headers.
    if (out.manifest && *out.manifest != *text)
      out.refusal = "it holds two manifest notes that differ";
    out.manifest = std::move(text);
  }
}

}  // namespace

LibraryFile inspect_library(const ByteSource& file) {
  LibraryFile out;
  Elf64_Ehdr header{};
  std::byte magic[SELFMAG]{};
  if (file.size < SELFMAG || !file.read(0, magic) || std::memcmp(magic, ELFMAG, SELFMAG) != 0)
    return {.refusal = "it is not a library: it is no ELF file", .manifest = {}};
  if (!read_record(file, 0, header))
    return {.refusal = fmt::format("it is truncated: {} bytes", file.size), .manifest = {}};
  out.refusal = header_refusal(header);
  if (!out.refusal.empty()) return out;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!fits(header.e_phoff, segments.size() * sizeof(Elf64_Phdr), file.size) ||
      !file.read(header.e_phoff, std::as_writable_bytes(std::span(segments))))
    return {.refusal = "it is truncated: its program headers are not in it", .manifest = {}};
  out.refusal = segments_refusal(segments, file.size);
  std::uint64_t read = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (!out.refusal.empty()) break;
    if (segment.p_type != PT_NOTE) continue;
    read += segment.p_filesz;
    if (read > 2 * kMostNoteBytes)
      out.refusal = "its ELF notes overlap or are too large";
    else
      read_notes(file, segment, out);
  }
  return out;
}

}  // namespace plugrad::runtime
