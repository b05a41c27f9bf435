// 128-bit integers: an extension of GCC and Clang, named here so that -Wpedantic stays on.
#pragma once

namespace plugrad {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

}  // namespace plugrad
