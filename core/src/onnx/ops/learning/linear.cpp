// The simple operators of ai.onnx.ml: linear models, features and tables of labels.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/check.h"
#include "onnx/ops/learning/post_transform.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

// One number for each feature of x, or for all. Errors: User for other lists.
Tensor row_for(Call& call, const Tensor& x, const std::vector<double>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (count != 1 && (x.ndim() == 0 || count != x.size(-1)))
    call.wrong(
        fmt::format("{} numbers are not for an input of shape {}", count, to_string(x.shape())));
  return row_of(numbers);
}

Values array_feature_extractor(Call& call) {
  const Tensor x = call[0].ndim() == 1 ? call[0].unsqueeze(0) : call[0];
  return {x.index_select(-1, call[1].flatten())};
}

Values binarizer(Call& call) {
  const Tensor x = call[0], wide = is_float(x.dtype()) ? x : x.cast(DType::F64);
  return {(wide > call.number("threshold", 0)).cast(x.dtype())};
}

Values scaler(Call& call) {
  Tensor x = call[0].cast(DType::F32);
  if (call.attribute("offset")) x = x - row_for(call, x, call.numbers("offset"));
  if (call.attribute("scale")) x = x * row_for(call, x, call.numbers("scale"));
  return {x};
}

// Elements that equal one value, or are NaN where that is, are others.
Values imputer(Call& call) {
  const Tensor x = call[0];
  if (!is_float(x.dtype())) {
    const auto given = call.integers("imputed_value_int64s");
    row_for(call, x, {given.begin(), given.end()});
    const Tensor values = Tensor::from(given);
    return {(x == call.integer("replaced_value_int64", 0)).where(values.cast(x.dtype()), x)};
  }
  const Tensor values = row_for(call, x, call.numbers("imputed_value_floats")).cast(x.dtype());
  const double replaced = call.number("replaced_value_float", 0);
  return {(std::isnan(replaced) ? x.isnan() : x == replaced).where(values, x)};
}

Values feature_vectorizer(Call& call) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const Tensor x = call[i].cast(DType::F32);
    parts.push_back(x.ndim() == 1 ? x.unsqueeze(0) : x);
  }
  return {cat(parts, 1)};
}

// A further axis with a 1 at the element's category. Errors: User for an element of none, if the
// attribute zeros is 0.
Values one_hot_encoder(Call& call) {
  const bool needs_category = call.integer("zeros", 1) == 0;
  const auto require_one = [&](const auto& categories, const auto& element) {
    if (needs_category && std::ranges::find(categories, element) == std::end(categories))
      call.wrong(fmt::format("\"{}\" is in no category, and zeros is 0", element));
  };
  if (call.attribute("cats_strings")) {
    const Strings* const strings = call.value(0).strings();
    if (!strings) call.wrong("the categories are strings, the input is none");
    const auto names = call.texts("cats_strings");
    std::vector<float> ones;
    for (const std::string& element : strings->elements) {
      require_one(names, element);
      for (const std::string_view name : names) ones.push_back(name == element ? 1.0F : 0.0F);
    }
    Shape shape = strings->shape;
    shape.push_back(static_cast<int64_t>(names.size()));
    return {Tensor::from(ones, shape)};
  }
  const auto categories = call.integers("cats_int64s");
  const Tensor x = call[0].cast(DType::I64);
  if (needs_category && call.recording().is_jitted) throw NeedsHostValues();
  if (needs_category)
    for (const int64_t element : x.to_vector<int64_t>()) require_one(categories, element);
  return {(x.unsqueeze(-1) == Tensor::from(categories)).cast(DType::F32)};
}

// By the largest element, the sum of sizes or the length of each row; rows of 0 stay.
Values normalizer(Call& call) {
  const Tensor x = call[0].cast(DType::F32);
  const std::string_view norm = call.text("norm", "MAX");
  const Tensor divisor = norm == "MAX"  ? x.max(-1, true)
                         : norm == "L1" ? x.abs().sum(-1, true)
                                        : x.square().sum(-1, true).sqrt();
  return {(divisor == 0).where(x, x / divisor)};
}

// x times the coefficients of `count` targets, with their intercepts.
Tensor linear_scores(Call& call, int64_t count) {
  const Tensor given = call[0].cast(DType::F32);
  const Tensor x = given.ndim() == 1 ? given.unsqueeze(0) : given;
  const std::vector<double> coefficients = call.numbers("coefficients");
  if (count <= 0 || static_cast<int64_t>(coefficients.size()) != count * x.size(1))
    call.wrong(fmt::format("{} coefficients are not {} for each of {} targets", coefficients.size(),
                           x.size(1), count));
  const Tensor scores = x.matmul(row_of(coefficients).reshape({count, -1}).transpose());
  const std::vector<double> intercepts = call.numbers("intercepts");
  return intercepts.empty() ? scores : scores + row_for(call, scores, intercepts);
}

Values linear_regressor(Call& call) {
  return {post_transformed(call, call.text("post_transform", "NONE"),
                           linear_scores(call, call.integer("targets", 1)))};
}

// Two classes may have one score, which is that of the second.
Values linear_classifier(Call& call) {
  const auto classes = static_cast<int64_t>(
      std::max(call.texts("classlabels_strings").size(), call.integers("classlabels_ints").size()));
  const Tensor given = call[0];
  const auto targets = static_cast<int64_t>(call.numbers("coefficients").size()) /
                       std::max<int64_t>(given.size(-1), 1);
  Tensor scores = linear_scores(call, targets);
  if (targets == 1 && classes == 2)
    scores = (scores * Tensor::from<float>({-1, 1}));
  else if (targets == 1 || targets != classes)
    call.unsupported(fmt::format("{} targets for {} classes", targets, classes));
  scores = post_transformed(call, call.text("post_transform", "NONE"), scores);
  return {labels_of(call, scores.argmax(1), "classlabels_ints"), scores};
}

// A list of keys or values that attributes give: a tensor, strings, integers or floats.
Value list_of(Call& call, const std::string& name) {
  if (const auto* given = call.attribute(name + "_tensor"); given && !given->tensors.empty())
    return call.recording().files->constant(given->tensors[0]);
  if (call.attribute(name + "_strings")) {
    const auto texts = call.texts(name + "_strings");
    return Strings{{static_cast<int64_t>(texts.size())}, {texts.begin(), texts.end()}};
  }
  if (call.attribute(name + "_int64s")) return Tensor::from(call.integers(name + "_int64s"));
  if (call.attribute(name + "_floats")) return row_of(call.numbers(name + "_floats"));
  return {};
}

Value counted(int64_t count) {
  return Tensor::arange(count, DType::I64);
}

struct LabelTable {
  Value keys, values, otherwise;  // the last has one element
};

Value default_label(Call& call, const Value& values) {
  if (const auto* given = call.attribute("default_tensor"); given && !given->tensors.empty())
    return call.recording().files->constant(given->tensors[0]);
  if (values.strings()) return Strings{{}, {std::string(call.text("default_string", "_Unused"))}};
  const DType dtype = values.tensor().dtype();
  return is_float(dtype) ? Tensor(call.number("default_float", -0.0)).cast(dtype)
                         : Tensor(call.integer("default_int64", -1)).cast(dtype);
}

bool are_texts(const Value& value) {
  return value.strings() != nullptr;
}
int64_t labels_in(const Value& list) {
  return are_texts(list) ? std::ssize(list.strings()->elements) : list.tensor().numel();
}

LabelTable label_table(Call& call) {
  LabelTable table{list_of(call, "keys"), list_of(call, "values"), {}};
  if (call.attribute("classes_strings")) {  // version 1: a list of names and their numbers
    const auto names = call.texts("classes_strings");
    const auto count = static_cast<int64_t>(names.size());
    const Strings texts{{count}, {names.begin(), names.end()}};
    table = call.value(0).strings() ? LabelTable{texts, counted(count), {}}
                                    : LabelTable{counted(count), texts, {}};
  }
  if (!table.keys.is_given() || !table.values.is_given()) call.wrong("keys or values are missing");
  if (labels_in(table.keys) != labels_in(table.values))
    call.wrong(fmt::format("there are {} keys and {} values", labels_in(table.keys),
                           labels_in(table.values)));
  if (are_texts(table.keys) != are_texts(call.value(0)))
    call.wrong("the keys and the input must be of one type");
  table.otherwise = default_label(call, table.values);
  if (are_texts(table.values) != are_texts(table.otherwise) || labels_in(table.otherwise) != 1)
    call.wrong("default_tensor must be one element of the values' type");
  return table;
}

// For each element the index of the last key that equals it; -1 for none.
std::vector<int64_t> found(Call& call, const LabelTable& table) {
  std::vector<int64_t> result;
  const auto look_up = [&](const auto& keys, const auto& elements) {
    std::map<std::decay_t<decltype(keys[0])>, int64_t> index;
    for (size_t i = 0; i < keys.size(); ++i)
      index.insert_or_assign(keys[i], static_cast<int64_t>(i));
    for (const auto& element : elements) {
      const auto at = index.find(element);
      result.push_back(at == index.end() ? -1 : at->second);
    }
  };
  if (const Strings* strings = call.value(0).strings()) {
    look_up(table.keys.strings()->elements, strings->elements);
    return result;
  }
  const auto numbers = [](const tensor::HostValues& values) {
    std::vector<uint64_t> keys;
    for (const uint64_t bits : values.bits) {
      const double number = is_float(values.dtype) ? std::bit_cast<double>(bits) : 1;
      keys.push_back(std::isnan(number) ? ~uint64_t{0} : number == 0 ? 0 : bits);
    }
    return keys;
  };
  look_up(numbers(host_values_of(table.keys, call.recording().is_jitted)), numbers(call.host(0)));
  return result;
}

// Numbers are found on the device. The last of equal keys counts, and NaN equals NaN.
Tensor encoded(const Tensor& x, const LabelTable& table) {
  const Tensor keys = table.keys.tensor().flatten().flip(0),
               values = table.values.tensor().flatten().flip(0);
  const Tensor element = x.unsqueeze(-1);
  Tensor is_key = element == keys.cast(x.dtype());
  if (is_float(x.dtype())) is_key = is_key | (element.isnan() & keys.isnan());
  const Tensor place = is_key.cast(DType::I32).argmax(-1);
  return is_key.any(-1).where(values.index_select(0, place),
                              table.otherwise.tensor().reshape({}).cast(values.dtype()));
}

Values label_encoder(Call& call) {
  const LabelTable table = label_table(call);
  const Strings* const strings = call.value(0).strings();
  if (!strings && !table.values.strings()) return {encoded(call[0], table)};
  const Shape shape = strings ? strings->shape : call[0].shape();
  const std::vector<int64_t> index = found(call, table);
  if (const Strings* labels = table.values.strings()) {
    Strings result{shape, {}};
    for (const int64_t i : index)
      result.elements.push_back(i < 0 ? table.otherwise.strings()->elements.at(0)
                                      : labels->elements[static_cast<size_t>(i)]);
    return {result};
  }
  const Tensor values = table.values.tensor().flatten(), at = Tensor::from(index, shape);
  return {(at < 0).where(table.otherwise.tensor().reshape({}).cast(values.dtype()),
                         values.index_select(0, at.maximum(0)))};
}

// For each row of numbers a map from the labels to them.
Values zip_map(Call& call) {
  const auto names = call.texts("classlabels_strings");
  const auto integers = call.integers("classlabels_int64s");
  const size_t labels = std::max(names.size(), integers.size());
  const Shape shape = call[0].shape();
  if (labels == 0 || std::min(names.size(), integers.size()) != 0 || shape.empty() ||
      shape.size() > 2 || shape.back() != static_cast<int64_t>(labels))
    call.wrong(fmt::format("{} names and {} integers are no labels for an input of shape {}",
                           names.size(), integers.size(), to_string(shape)));
  const std::vector<double> numbers = call.numbers_input(0);
  std::vector<Value> maps;
  for (auto number = numbers.begin(); number != numbers.end();) {
    const auto with_keys = [&]<class Key>(const auto& keys, std::map<Key, float> entries) {
      for (const auto& key : keys) entries[Key(key)] = static_cast<float>(*number++);
      return Map{std::move(entries)};
    };
    maps.push_back(names.empty() ? with_keys(integers, std::map<int64_t, float>())
                                 : with_keys(names, std::map<std::string, float>()));
  }
  return {Value::sequence(std::move(maps))};
}

constexpr OperatorRow kLinearRows[] = {
    {"ArrayFeatureExtractor", array_feature_extractor, false, kMachineLearning},
    {"Binarizer", binarizer, false, kMachineLearning},
    {"FeatureVectorizer", feature_vectorizer, false, kMachineLearning},
    {"Imputer", imputer, false, kMachineLearning},
    {"LabelEncoder", label_encoder, false, kMachineLearning},
    {"LinearClassifier", linear_classifier, false, kMachineLearning},
    {"LinearRegressor", linear_regressor, false, kMachineLearning},
    {"Normalizer", normalizer, false, kMachineLearning},
    {"OneHotEncoder", one_hot_encoder, false, kMachineLearning},
    {"Scaler", scaler, false, kMachineLearning},
    {"ZipMap", zip_map, false, kMachineLearning},
};

}  // namespace

std::span<const OperatorRow> linear_operators() {
  return kLinearRows;
}

}  // namespace plugrad::onnx
