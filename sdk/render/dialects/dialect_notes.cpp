#include "render/dialects/dialect_notes.h"

namespace plugrad::render {
namespace {

// clang-format off
constexpr FlagRow kFlagsC[] = {
    {"-std=gnu11 or later", "`_Static_assert`, `_Generic`, statement expressions and `__typeof__`"},
    {"-fno-strict-aliasing", "a buffer of the allocator has no declared type"},
    {"-fwrapv", "integers wrap in kernel IR. The text converts to unsigned where necessary; the flag covers the compiler's own arithmetic on narrow types"},
    {"-ffp-contract=off, or =fast where the compile option `contract` is ALLOWED", "by default Clang fuses within an expression and GCC everywhere; GCC ignores the pragma in the text"},
    {"-fno-math-errno", "square roots become one instruction"},
    {"no -ffast-math, -Ofast, -funsafe-math-optimizations", "NaN, infinity, -0 and the order of operations are part of the results"},
    {"-lm", "`fma`, `sqrt` and `trunc` of processors without the instruction, where the compiler is GCC"},
};
constexpr FlagRow kFlagsCuda[] = {
    {"--fmad=false (NVRTC), -ffp-contract=off (Clang)", "the text marks where a product and a sum may round once: `mul_add`"},
    {"-DPLUGRAD_CONTRACT", "where the compile option `contract` is ALLOWED"},
    {"--ftz=false --prec-div=true --prec-sqrt=true", "IEEE division, square root and denormals"},
    {"--std=c++17 or later", "templates over vector types"},
};
constexpr FlagRow kFlagsGlsl[] = {
    {"target Vulkan 1.1, SPIR-V 1.3 or later", "buffer references, explicit arithmetic types"},
    {"optimisation level zero", "the driver optimises; rewriting floats before that loses NaN and -0"},
    {"NoContraction on every float result, in SPIR-V", "GLSL's `precise` is not written: a driver may otherwise contract and reorder"},
};
constexpr FlagRow kFlagsOpencl[] = {
    {"-cl-std=CL1.2 or later", ""},
    {"-cl-fp32-correctly-rounded-divide-sqrt", "where `caps.division` declares correctly rounded divisions and the device has the option"},
    {"no -cl-fast-relaxed-math, -cl-mad-enable, -cl-denorms-are-zero", "NaN, -0, denormals and rounding are part of the results"},
    {"-DPLUGRAD_CONTRACT_OFF", "where the compile option `contract` is OFF"},
};

constexpr DialectNotes kNotes[] = {
    {&kDialectC,
     "C11 with GNU extensions: Clang 17 and later; GCC 12 and later for kernels with one lane (with several: `c_gcc`). Tests compile and run it with Clang 19 and GCC 12 for x86-64, aarch64 and riscv64, and compile it for riscv32. The text asserts the sizes of types, which hold on every target, including 32-bit ones. `f16` needs `_Float16` (GCC on RISC-V: from 13).",
     "`void NAME(void *const *buffers, const uint64_t *scalars, uint64_t begin, uint64_t end, const uint64_t *counts)` runs the groups from `begin` to below `end` of a launch of `counts` groups along the three axes; kernels of one axis omit `counts`. A scalar is in the low bytes of its slot.",
     "A text that allows contraction neither forbids nor forces it: the compiler's flag decides. A text that forbids it contains a pragma for Clang, which overrides the flag.",
     "`ext_vector_type` of Clang. GCC treats such a type as one lane, and the size assertions of the text fail: with GCC, name the dialect `c_gcc` or claim `vector_lanes` 1.",
     kFlagsC},
    {&kDialectCGcc,
     "`c` with GCC's vectors; a kernel with one lane differs only in the header. GCC 12 and later and Clang 17 and later compile it. Tests compile and run it with GCC 12 for x86-64, aarch64 and riscv64 and with Clang 19 for x86-64, and compile it for riscv32.",
     "As in `c`.",
     "As in `c`.",
     "`vector_size`, of up to 64 lanes whatever the processor's registers. A comparison gives 0 or -1 in integers of the same size, `select_…` chooses by their bits, `splat_…` repeats an element. Division of integers, shifts by vectors, conversions of floats to integers and to bf16, SQRT, FMA, TRUNC and predicated loads and stores go lane by lane.",
     kFlagsC},
    {&kDialectCuda,
     "CUDA C++17 of NVRTC or Clang, without a header of the toolkit.",
     "`extern \"C\" __global__ void NAME(…)`: buffers and scalars in the order of the parameters.",
     "`mul_add` rounds once where the macro `PLUGRAD_CONTRACT` is defined; all other operations round separately.",
     "Structs that are loaded, stored and passed to tensor cores; no arithmetic. Claim `vector_lanes` 1.",
     kFlagsCuda},
    {&kDialectGlsl,
     "GLSL 4.60 for Vulkan compute, by shaderc or glslang.",
     "`main` of a compute shader. Parameters are 64-bit slots, first the addresses of all buffers, then the scalars: 16 as push constants, or more behind one address.",
     "The text is the same with and without contraction: decorate results in SPIR-V.",
     "None: claim `vector_lanes` 1.",
     kFlagsGlsl},
    {&kDialectOpencl,
     "OpenCL C 1.2, with `cl_khr_fp64` and 64-bit atomics where the kernel uses them. Half types are kept as `ushort`.",
     "`__kernel void k_NAME(…)`: buffers and scalars in the order of the parameters; a bool scalar is a `uchar`, one of f16 or bf16 a `ushort`.",
     "A text that allows contraction forbids it where the macro `PLUGRAD_CONTRACT_OFF` is defined.",
     "OpenCL's own, up to 16 lanes.",
     kFlagsOpencl},
};
// clang-format on

}  // namespace

constinit const std::span<const DialectNotes> kDialectNotes = kNotes;

}  // namespace plugrad::render
