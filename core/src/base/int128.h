// 128-bit integers: an extension of GCC and Clang, named here so that -Wpedantic stays on.
#pragma once

namespace plugrad {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

}  // namespace plugrad
