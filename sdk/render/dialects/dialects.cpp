// The list of dialects.
#include "render/dialects/dialect.h"

namespace plugrad::render {
namespace {

constexpr const Dialect* kList[] = {
    &kDialectC, &kDialectCGcc, &kDialectCuda, &kDialectGlsl, &kDialectOpencl,
};

}  // namespace

constinit const std::span<const Dialect* const> kDialects = kList;

}  // namespace plugrad::render
