// Cast and CastLike: between dtypes, emulated types and strings.
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/round.h"
#include "onnx/import/emulated.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

struct CastTarget {
  DataType type = DataType::Undefined;  // of strings and emulated types
  DType dtype = DType::F32;
};

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "INF" and "NaN" are read in any case, as from_chars does.
template <class Float>
uint64_t float_bits(Call& call, std::string_view text, std::string_view whole) {
  Float number = 0;
  if (!parse(text, number)) call.wrong(fmt::format("the string \"{}\" is no number", whole));
  return std::bit_cast<uint64_t>(static_cast<double>(number));
}

uint64_t integer_bits(Call& call, std::string_view text, std::string_view whole) {
  int64_t number = 0;
  if (parse(text, number)) return static_cast<uint64_t>(number);
  uint64_t large = 0;
  if (parse(text, large)) return large;
  const auto fraction = std::bit_cast<double>(float_bits<double>(call, text, whole));
  if (!(std::abs(fraction) < std::ldexp(1.0, 63)))
    call.wrong(fmt::format("the string \"{}\" is no integer", whole));
  return static_cast<uint64_t>(static_cast<int64_t>(fraction));
}

// The numbers in the widest dtype of their kind, except that f32 is not rounded twice.
Tensor parsed_numbers(Call& call, const Strings& strings, DType dtype) {
  const DType wide = dtype == DType::F64   ? DType::F64
                     : is_float(dtype)     ? DType::F32
                     : dtype == DType::U64 ? DType::U64
                                           : DType::I64;
  tensor::HostValues values{strings.shape, wide, {}};
  for (const std::string& whole : strings.elements) {
    std::string_view text = whole;
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    values.bits.push_back(wide == DType::F64   ? float_bits<double>(call, text, whole)
                          : wide == DType::F32 ? float_bits<float>(call, text, whole)
                                               : integer_bits(call, text, whole));
  }
  return Value::known(std::move(values)).host_tensor();
}

// The shortest digits that the dtype reads back as the number.
std::string text_of_float(double number, DType dtype) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-INF" : "INF";
  std::string text;
  if (dtype == DType::F64) {
    text = fmt::format("{}", number);
  } else if (dtype == DType::F32) {
    text = fmt::format("{}", static_cast<float>(number));
  } else {
    for (int digits = 1; digits < 9; ++digits) {
      const double shorter = std::strtod(fmt::format("{:.{}g}", number, digits).c_str(), nullptr);
      text = fmt::format("{}", shorter);
      if (round_float(shorter, dtype) == number) break;
    }
  }
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

Strings texts_of(const tensor::HostValues& values) {
  Strings strings{values.shape, {}};
  for (const uint64_t bits : values.bits)
    strings.elements.push_back(
        is_float(values.dtype)        ? text_of_float(std::bit_cast<double>(bits), values.dtype)
        : values.dtype == DType::Bool ? (bits != 0 ? "True" : "False")
        : is_unsigned(values.dtype)   ? std::to_string(bits)
                                      : std::to_string(static_cast<int64_t>(bits)));
  return strings;
}

Values cast_to(Call& call, const CastTarget& to) {
  const Strings* const strings = call.value(0).strings();
  if (to.type == DataType::String) {
    if (strings) return {call.value(0)};
    return {texts_of(call.host(0))};
  }
  const Tensor x = strings ? parsed_numbers(call, *strings, to.dtype) : call[0];
  if (!is_emulated(to.type)) return {x.cast(to.dtype)};
  if (call.value(0).emulated() == to.type) return {call.value(0)};
  const Rounding rounding{call.integer("saturate", 1) != 0, call.text("round_mode", "up")};
  return {Value(rounded_to(x, to.type, rounding)).as(to.type)};
}

Values cast(Call& call) {
  const DataType type = call.type("to");
  if (type == DataType::Undefined) call.wrong("attribute to is missing");
  if (type == DataType::String) return cast_to(call, {type});
  return cast_to(call, {type, *call.dtype("to")});
}

Values cast_like(Call& call) {
  const Value& like = call.value(1);
  if (like.strings()) return cast_to(call, {DataType::String});
  return cast_to(call, {like.emulated(), call[1].dtype()});
}

Values bit_cast(Call& call) {
  const auto to = call.dtype("to");
  if (!to) call.wrong("attribute to is missing");
  if (is_emulated(call.type("to")) || is_emulated(call.value(0).emulated()))
    call.unsupported(fmt::format(
        "bits of {} are not those in memory",
        name_of(is_emulated(call.type("to")) ? call.type("to") : call.value(0).emulated())));
  return {call[0].bitcast(*to)};
}

constexpr OperatorRow kCastRows[] = {
    {"BitCast", bit_cast},
    {"Cast", cast, kVariableSizes},
    {"CastLike", cast_like, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> cast_operators() {
  return kCastRows;
}

}  // namespace plugrad::onnx
