// The control state of floating-point arithmetic: rounding, denormals, precision, traps. Foreign
// code may change it, e.g. the constructor that gcc -Ofast links into a library. Both scopes
// restore the calling thread's state at their end, and leave the flags of exceptions as they are,
// except that FloatModeScope raises those of an inexact sum and of a denormal operand.
#pragma once

#include <cstdint>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace plugrad::runtime {

/// All of the state. For calls that take microseconds: reading MXCSR takes 5 ns on an EPYC.
class FloatStateScope {
 public:
  FloatStateScope() noexcept : before_(read()) {}
  ~FloatStateScope() {
    if (const State now = read(); now.simd != before_.simd || now.x87 != before_.x87) [[unlikely]]
      write(before_);
  }
  FloatStateScope(const FloatStateScope&) = delete;
  FloatStateScope& operator=(const FloatStateScope&) = delete;

 private:
  friend class FloatModeScope;
  struct State {
    std::uint64_t simd = 0;
    std::uint16_t x87 = 0;
  };
#if defined(__x86_64__)
  static constexpr std::uint32_t kFlags = 0x3f;  // of MXCSR: exceptions that occurred
  static State read() noexcept {
    State state;
    state.simd = _mm_getcsr() & ~kFlags;
    asm volatile("fnstcw %0" : "=m"(state.x87));
    return state;
  }
  static void write(const State& state) noexcept {
    _mm_setcsr(static_cast<std::uint32_t>(state.simd) | (_mm_getcsr() & kFlags));
    asm volatile("fldcw %0" : : "m"(state.x87));
  }
#elif defined(__aarch64__)
  static State read() noexcept {
    State state;
    asm volatile("mrs %0, fpcr" : "=r"(state.simd));
    return state;
  }
  static void write(const State& state) noexcept {
    asm volatile("msr fpcr, %0" : : "r"(state.simd));
  }
#else
  static State read() noexcept { return {}; }
  static void write(const State&) noexcept {}
#endif
  const State before_;
};

#ifdef __x86_64__
/// Rounding and denormals, seen by the results of four sums: 1 ns on the same machine.
class FloatModeScope {
 public:
  FloatModeScope() noexcept : before_(sums()) {
    if (before_ != kUsual) [[unlikely]]
      state_ = FloatStateScope::read();
  }
  ~FloatModeScope() {
    if (sums() != before_) [[unlikely]]
      restore();
  }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  static constexpr int kUsual = 0xf;  // to nearest, with denormals

  // A bit for each sum that is as usual: 1 and -1 with three quarters of their last place, a
  // denormal with 0. The compiler must not compute them.
  static int sums() noexcept {
    constexpr float kPlace = 0x1p-23f;
    __m128 sum = _mm_set_ps(0.0f, 0x1p-130f, -1.0f, 1.0f);
    const __m128 other = _mm_set_ps(0.0f, 0.0f, -0.75f * kPlace, 0.75f * kPlace);
    const __m128 usual = _mm_set_ps(0.0f, 0x1p-130f, -1.0f - kPlace, 1.0f + kPlace);
    asm volatile("addps %1, %0" : "+x"(sum) : "x"(other));
    return _mm_movemask_ps(
        _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_castps_si128(sum), _mm_castps_si128(usual))));
  }
  // Both units round alike, as fesetround() has it.
  void restore() const noexcept {
    FloatStateScope::State state = state_;
    if (before_ == kUsual) {
      constexpr std::uint32_t kModes = 0xe040, kRounding = 0x0c00;  // of MXCSR, of the x87
      state = FloatStateScope::read();
      state.simd &= ~std::uint64_t{kModes};
      state.x87 &= static_cast<std::uint16_t>(~kRounding);
    }
    FloatStateScope::write(state);
  }

  const int before_;
  FloatStateScope::State state_;  // read if it was unusual
};
#else
using FloatModeScope = FloatStateScope;
#endif

}  // namespace plugrad::runtime
