#include "pocl.h"

#include <initializer_list>

namespace plugrad::opencl {
namespace {

struct Scalar {
  const char* name;
  const char* definition;  // nullptr: same name in C
};
constexpr Scalar kScalars[] = {{"char", nullptr},  {"uchar", "unsigned char"},
                               {"short", nullptr}, {"ushort", "unsigned short"},
                               {"int", nullptr},   {"uint", "unsigned int"},
                               {"long", nullptr},  {"ulong", "unsigned long"},
                               {"float", nullptr}, {"double", nullptr}};
constexpr const char* kLanes[] = {"2", "4", "8", "16"};
constexpr const char* kSpaces[] = {"__global ", "__local ", "__private "};

// Declares the OpenCL C types, as_ and convert_ functions that `text` uses: each line costs build
// time.
std::string types_of(std::string_view text) {
  const auto names = [&](const std::string& name) { return text.find(name) != text.npos; };
  std::string out =
      "#define PGR_OVERLOAD __attribute__((overloadable))\n"
      "typedef unsigned long size_t;\n"
      "#define CLK_LOCAL_MEM_FENCE 1\n#define CLK_GLOBAL_MEM_FENCE 2\n";
  for (const Scalar& scalar : kScalars) {
    const std::string name = scalar.name;
    if (scalar.definition) out += std::string("typedef ") + scalar.definition + " " + name + ";\n";
    if (names("as_" + name))
      out += "#define as_" + name + "(x) __builtin_astype((x), " + name + ")\n";
    if (names("convert_" + name)) out += "#define convert_" + name + "(x) ((" + name + ")(x))\n";
    for (const char* lanes : kLanes) {
      const std::string type = name + lanes;
      if (!names(type)) continue;
      out += "typedef " + name + " " + type + " __attribute__((ext_vector_type(" + lanes + ")));\n";
      out += "#define as_" + type + "(x) __builtin_astype((x), " + type + ")\n";
      out += "#define convert_" + type + "(x) __builtin_convertvector((x), " + type + ")\n";
    }
  }
  return out;
}

// Loads and stores of `lanes` elements at an element's alignment, for the element types that
// `source` names.
std::string vector_access(const std::string& lanes, std::string_view source) {
  std::string out;
  for (const Scalar& scalar : kScalars) {
    const std::string elem = scalar.name, type = elem + lanes, packed = "packed_" + type;
    if (source.find(elem) == source.npos) continue;
    out += "typedef " + type + " " + packed + " __attribute__((aligned(__alignof__(" + elem +
           "))));\n";
    for (const std::string space : kSpaces) {
      out += "static inline PGR_OVERLOAD " + type + " vload" + lanes + "(size_t o, const " + space +
             elem + " *p) { return *(const " + space + packed + " *)(p + o * " + lanes + "); }\n";
      out += "static inline PGR_OVERLOAD void vstore" + lanes + "(" + type + " v, size_t o, " +
             space + elem + " *p) { *(" + space + packed + " *)(p + o * " + lanes + ") = v; }\n";
    }
  }
  return out;
}

// `name` with `arguments` arguments of one type, for float and double, scalar and vector.
std::string math_function(const std::string& name, int arguments) {
  std::string out;
  for (const std::string elem : {"float", "double"})
    for (const std::string lanes : {"", "2", "4", "8", "16"}) {
      const std::string type = elem + lanes;
      out += type + " PGR_OVERLOAD __attribute__((const)) " + name + "(" + type;
      for (int i = 1; i < arguments; ++i) out += ", " + type;
      out += ");\n";
    }
  return out;
}

std::string half_access() {
  std::string out =
      "float PGR_OVERLOAD vload_half(size_t, const __private half *);\n"
      "void PGR_OVERLOAD vstore_half_rte(float, size_t, __private half *);\n";
  for (const std::string lanes : kLanes) {
    out += "float" + lanes + " PGR_OVERLOAD vload_half" + lanes +
           "(size_t, const __private half *);\n";
    out += "void PGR_OVERLOAD vstore_half" + lanes + "_rte(float" + lanes +
           ", size_t, __private half *);\n";
  }
  return out;
}

std::string atomic_function(const std::string& name, std::initializer_list<std::string> types,
                            bool compares) {
  std::string out;
  for (const std::string& type : types)
    for (const std::string space : {"__global ", "__local "})
      out += type + " PGR_OVERLOAD " + name + "(volatile " + space + type + " *, " + type +
             (compares ? ", " + type : "") + ");\n";
  return out;
}

}  // namespace

std::string pocl_declarations(std::string_view source) {
  const auto uses = [&](const std::string& name) { return source.find(name) != source.npos; };
  std::string out;
  for (const char* name : {"get_group_id", "get_local_id"})
    if (uses(name))
      out += std::string("size_t PGR_OVERLOAD __attribute__((const)) ") + name + "(uint);\n";
  if (uses("barrier(")) out += "void PGR_OVERLOAD __attribute__((convergent)) barrier(uint);\n";
  for (const std::string lanes : kLanes)
    if (uses("vload" + lanes + "(") || uses("vstore" + lanes + "("))
      out += vector_access(lanes, source);
  if (uses("_half")) out += half_access();
  for (const char* name : {"sqrt", "trunc", "fabs"})
    if (uses(std::string(name) + "(")) out += math_function(name, 1);
  if (uses("fma(")) out += math_function("fma", 3);
  if (uses("atomic_add(")) out += atomic_function("atomic_add", {"int", "uint"}, false);
  if (uses("atom_add(")) out += atomic_function("atom_add", {"long", "ulong"}, false);
  if (uses("atomic_cmpxchg(")) out += atomic_function("atomic_cmpxchg", {"uint"}, true);
  if (uses("atom_cmpxchg(")) out += atomic_function("atom_cmpxchg", {"ulong"}, true);
  return types_of(out + std::string(source)) + out;
}

}  // namespace plugrad::opencl
