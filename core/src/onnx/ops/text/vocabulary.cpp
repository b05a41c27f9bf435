// Operators that look words and labels up, which the host computes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <variant>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

// A word; numbers are bits of a constant (ir/graph.h).
using Word = std::variant<std::string, uint64_t>;

// All NaNs are equal, and so are both zeros.
uint64_t canonical_bits(double number) {
  if (std::isnan(number)) return std::bit_cast<uint64_t>(std::nan(""));
  return std::bit_cast<uint64_t>(number == 0 ? 0.0 : number);
}

std::vector<Word> words_of(Call& call, const Value& value, bool is_jitted) {
  if (const Strings* strings = value.strings())
    return {strings->elements.begin(), strings->elements.end()};
  if (!value.is_tensor()) call.wrong("words are strings or numbers");
  const tensor::HostValues values = host_values_of(value, is_jitted);
  std::vector<Word> words;
  for (const uint64_t bits : values.bits)
    words.emplace_back(is_float(values.dtype) ? canonical_bits(std::bit_cast<double>(bits)) : bits);
  return words;
}

// N-grams of the pool by their words, each with its place in the pool.
class Pool {
 public:
  Pool(Call& call, const std::vector<Word>& words) {
    const std::vector<int64_t> starts = call.integers("ngram_counts");
    const auto total = static_cast<int64_t>(words.size());
    int64_t number = 0;
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t end = i + 1 < starts.size() ? starts[i + 1] : total;
      const auto length = static_cast<int64_t>(i + 1);
      if (starts[i] < 0 || end < starts[i] || end > total || (end - starts[i]) % length != 0)
        call.wrong("ngram_counts do not divide the pool into n-grams");
      for (int64_t at = starts[i]; at < end; at += length)
        places_.insert_or_assign(std::vector<Word>(words.begin() + at, words.begin() + at + length),
                                 number++);
    }
    size_ = number;
  }
  int64_t size() const { return size_; }
  std::optional<int64_t> find(const std::vector<Word>& words) const {
    const auto at = places_.find(words);
    return at == places_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  std::map<std::vector<Word>, int64_t> places_;
  int64_t size_ = 0;
};

// How often each n-gram is in the row, its words up to `skips` others apart. Skips make no difference
// to single words, which count once.
std::vector<double> counts_of(Call& call, const Pool& pool, std::span<const Word> row) {
  std::vector<double> counts(static_cast<size_t>(pool.size()), 0);
  const int64_t size = std::ssize(row);
  const int64_t least = std::max<int64_t>(call.integer("min_gram_length", 1), 1);
  const int64_t most = std::min(call.integer("max_gram_length", 1), size);
  const int64_t steps = std::min(call.integer("max_skip_count", 0), size) + 1;
  for (int64_t step = 1; step <= steps; ++step)
    for (int64_t length = step == 1 ? least : std::max<int64_t>(least, 2); length <= most; ++length)
      for (int64_t start = 0; start + step * (length - 1) < size; ++start) {
        poll_interruption();
        std::vector<Word> words;
        for (int64_t i = 0; i < length; ++i)
          words.push_back(row[static_cast<size_t>(start + i * step)]);
        if (const auto place = pool.find(words)) counts[static_cast<size_t>(*place)] += 1;
      }
  return counts;
}

Values tf_idf_vectorizer(Call& call) {
  const std::string_view mode = call.text("mode", "TF");
  if (call.integer("min_gram_length", 1) > call.integer("max_gram_length", 1))
    call.wrong("min_gram_length is above max_gram_length");
  std::vector<Word> all;
  for (const std::string_view text : call.texts("pool_strings"))
    all.emplace_back(std::string(text));
  for (const int64_t word : call.integers("pool_int64s"))
    all.emplace_back(static_cast<uint64_t>(word));
  const Pool pool(call, all);
  const std::vector<int64_t> places = call.integers("ngram_indexes");
  const std::vector<double> weights = call.numbers("weights");
  if (static_cast<int64_t>(places.size()) < pool.size() || places.empty() ||
      std::ranges::min(places) < 0)
    call.wrong("ngram_indexes need a column for each n-gram of the pool");
  const auto width = static_cast<size_t>(std::ranges::max(places) + 1);
  if (!weights.empty() && weights.size() < width)
    call.wrong(fmt::format("there are {} weights for {} columns", weights.size(), width));

  const std::vector<Word> words = words_of(call, call.value(0), call.recording().is_jitted);
  const Strings* const strings = call.value(0).strings();
  const Shape shape = strings ? strings->shape : call[0].shape();
  if (shape.size() > 2) call.wrong("the input has more than two axes");
  const auto rows = static_cast<size_t>(shape.size() == 2 ? shape[0] : 1);
  require_host_elements({static_cast<int64_t>(rows), static_cast<int64_t>(width)});
  std::vector<double> results(rows * width, 0);
  for (size_t row = 0; row < rows; ++row) {
    const size_t length = words.size() / rows;
    const auto counts = counts_of(call, pool, std::span(words).subspan(row * length, length));
    for (size_t i = 0; i < counts.size(); ++i)
      results[row * width + static_cast<size_t>(places[i])] += counts[i];
  }
  // The weights are those of columns, as ONNX Runtime reads them, though the schema says n-grams.
  for (size_t i = 0; i < results.size() && mode != "TF"; ++i) {
    if (mode == "IDF") results[i] = std::min(results[i], 1.0);
    if (!weights.empty()) results[i] *= weights.at(i % width);
  }
  tensor::HostValues values{{static_cast<int64_t>(width)}, DType::F32, {}};
  if (shape.size() == 2) values.shape.insert(values.shape.begin(), shape[0]);
  for (const double result : results)
    values.bits.push_back(std::bit_cast<uint64_t>(static_cast<double>(static_cast<float>(result))));
  return {Value::known(std::move(values))};
}

// The number of each text, or the text of each number.
Values category_mapper(Call& call) {
  const auto texts = call.texts("cats_strings");
  const auto numbers = call.integers("cats_int64s");
  if (texts.size() != numbers.size())
    call.wrong("cats_strings and cats_int64s have different lengths");
  const int64_t no_number = call.integer("default_int64", -1);
  if (const Strings* labels = call.value(0).strings()) {
    tensor::HostValues found{labels->shape, DType::I64, {}};
    for (const std::string& label : labels->elements) {
      const auto at = std::ranges::find(texts, label);
      found.bits.push_back(static_cast<uint64_t>(
          at == texts.end() ? no_number : numbers[static_cast<size_t>(at - texts.begin())]));
    }
    return {Value::known(std::move(found))};
  }
  const std::string_view no_text = call.text("default_string", "_Unused");
  const tensor::HostValues given = call.host(0);
  Strings labels{given.shape, {}};
  for (const int64_t number : integers_of(given)) {
    const auto at = std::ranges::find(numbers, number);
    labels.elements.emplace_back(
        at == numbers.end() ? no_text : texts[static_cast<size_t>(at - numbers.begin())]);
  }
  return {std::move(labels)};
}

constexpr OperatorRow kVocabularyRows[] = {
    {"CategoryMapper", category_mapper, false, kMachineLearning},
    {"TfIdfVectorizer", tf_idf_vectorizer},
};

}  // namespace

std::span<const OperatorRow> vocabulary_operators() {
  return kVocabularyRows;
}

}  // namespace plugrad::onnx
