#include "onnx/file/attribute_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"

namespace plugrad::onnx {
namespace {

// The values that a schema allows only in its text: a range for each number of a list (of floats the
// least alone), or a set of words for each text.
struct AttributeValues {
  std::string_view attributes;  // separated by spaces
  std::string_view operators;  // those that the row is for; empty: those without a row of their own
  std::int64_t least = 0, most = 0;
  std::string_view words = {};
};

// Products of three of them fit 64 bits where the third is a size that the device can hold.
constexpr std::int64_t kMostCount = 0x7fff'ffff;
constexpr std::int64_t kMostAxis = 63;  // a tensor has at most 64 axes
constexpr std::int64_t kNewestType = static_cast<std::int64_t>(DataType::Int2);

// clang-format off
constexpr AttributeValues kValues[] = {
    {"blocksize channels chunk_size group hidden_size kernel_shape max_gram_length min_gram_length mincharnum "
     "n_targets num_groups num_outputs num_scan_inputs offset_group opset output_height output_width p "
     "pooled_shape qkv_hidden_sizes sample_size size strides dilations targets", "", 1, kMostCount},
    {"p", "LpNormalization", 1, 2},
    {"kv_num_heads num_heads q_num_heads", "", 0, kMostCount},
    {"kv_num_heads num_heads q_num_heads", "GroupQueryAttention LinearAttention MultiHeadAttention",
     1, kMostCount},
    {"K N block_size k max_skip_count n_supports ngram_counts ngram_indexes output_padding output_shape "
     "rotary_embedding_dim sampling_ratio split vectors_per_class", "", 0, kMostCount},
    {"k", "EyeLike", -kMostCount, kMostCount},
    {"class_ids class_nodeids class_treeids leaf_targetids nodes_falsenodeids nodes_featureids "
     "nodes_nodeids nodes_treeids nodes_truenodeids target_ids target_nodeids target_treeids "
     "tree_roots", "", 0, kMostCount},
    {"clip", "", 0, kMostCount},
    {"pads paddings", "", -kMostCount, kMostCount},
    {"left_window_size local_window_size right_window_size", "", -1, kMostCount},
    {"axes axis scan_input_axes scan_output_axes", "", -kMostAxis - 1, kMostAxis + 1},
    {"batch_dims perm", "", 0, kMostAxis},
    {"batch_axis time_axis", "", 0, 1},
    {"dtype output_datatype output_dtype precision softmax_precision stash_type to", "",
     0, kNewestType},
    {"aggregate_function", "TreeEnsemble", 0, 3},
    {"post_transform", "TreeEnsemble", 0, 4},
    {"qk_matmul_output_mode", "", 0, 3},
    {"align_corners allowzero antialias broadcast causal ceil_mode center_point_box channels_last "
     "count_include_pad detect_negative detect_positive directions do_rotary exclude_outside "
     "exclusive fmod input_forget interleaved inverse is_case_sensitive is_causal "
     "is_packed_batching is_test keepdims largest layout linear_before_reset mark new_axis "
     "nodes_falseleafs nodes_missing_value_tracks_true nodes_trueleafs noop_with_empty_axes "
     "one_class onesided output_sequence past_present_share_buffer periodic reverse rotary_interleaved "
     "saturate scan_input_directions scan_output_directions select_last_index "
     "sliding_window_cache sorted spatial storage_order training_mode transA transB transBatchA "
     "transBatchB unidirectional upper zeros", "", 0, 1},
    {"activation", "", 0, 0, "none silu swish"},
    {"activation", "Conv FusedConv", 0, 0, "Relu Tanh Sigmoid LeakyRelu Clip HardSigmoid"},
    {"activation", "FusedGemm", 0, 0,
     "Elu HardSigmoid LeakyRelu Relu ScaledTanh Selu Sigmoid Softplus Softsign Tanh ThresholdedRelu"},
    {"aggregate_function", "", 0, 0, "AVERAGE SUM MIN MAX"},
    {"approximate", "", 0, 0, "none tanh"},
    {"auto_pad", "", 0, 0, "NOTSET SAME_UPPER SAME_LOWER VALID"},
    {"case_change_action", "", 0, 0, "LOWER UPPER NONE"},
    {"coordinate_transformation_mode", "", 0, 0,
     "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
     "tf_half_pixel_for_nn tf_crop_and_resize"},
    {"coordinate_transformation_mode", "RoiAlign", 0, 0, "half_pixel output_half_pixel"},
    {"direction", "", 0, 0, "forward reverse bidirectional"},
    {"direction", "BitShift", 0, 0, "LEFT RIGHT"},
    {"k_quant_type v_quant_type", "", 0, 0, "NONE PER_TENSOR PER_CHANNEL"},
    {"keep_aspect_ratio_policy", "", 0, 0, "stretch not_larger not_smaller"},
    {"kernel_type", "", 0, 0, "LINEAR POLY RBF SIGMOID"},
    {"mode", "DepthToSpace SpaceToDepth", 0, 0, "DCR CRD"},
    {"mode", "GridSample", 0, 0, "bilinear nearest bicubic linear cubic"},
    {"mode", "Momentum", 0, 0, "standard nesterov"},
    {"mode", "Pad", 0, 0, "constant reflect edge wrap"},
    {"mode", "Resize Upsample", 0, 0, "nearest linear cubic bilinear trilinear"},
    {"mode", "RoiAlign", 0, 0, "avg max"},
    {"mode", "TensorScatter", 0, 0, "linear circular"},
    {"mode", "TfIdfVectorizer", 0, 0, "TF IDF TFIDF"},
    {"nearest_mode", "", 0, 0, "round_prefer_floor round_prefer_ceil floor ceil"},
    {"nodes_modes", "TreeEnsembleClassifier TreeEnsembleRegressor", 0, 0,
     "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF"},
    {"norm", "", 0, 0, "MAX L1 L2"},
    {"padding_mode", "", 0, 0, "zeros border reflection"},
    {"post_transform", "", 0, 0, "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"},
    {"reduction", "", 0, 0, "none add mul max min"},
    {"reduction", "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", 0, 0, "none mean sum"},
    {"round_mode", "", 0, 0, "up down nearest"},
    {"update_rule", "", 0, 0, "linear gated delta gated_delta"},
};
// clang-format on

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(words.back().size() + 1, text.size()));
  }
  return words;
}

// The row for an operator's attribute; null if every value is one.
const AttributeValues* values_of(std::string_view attribute, std::string_view op) {
  using Rows = std::unordered_map<std::string_view, std::vector<const AttributeValues*>>;
  static const Rows kByAttribute = [] {
    Rows rows;
    for (const AttributeValues& row : kValues)
      for (const std::string_view name : words_in(row.attributes)) rows[name].push_back(&row);
    return rows;
  }();
  const auto at = kByAttribute.find(attribute);
  if (at == kByAttribute.end()) return nullptr;
  const AttributeValues* general = nullptr;
  for (const AttributeValues* row : at->second)
    if (row->operators.empty())
      general = row;
    else if (has_word(row->operators, op))
      return row;
  return general;
}

// The letter of the type; of an old file, which leaves it out, that of what is given; 0: nothing.
char type_of(const AttributeMessage& given) {
  if (given.type > 0 && given.type < std::ssize(kAttributeTypes))
    return kAttributeTypes[static_cast<size_t>(given.type)];
  if (given.type != 0) return '?';
  if (given.number) return 'f';
  if (given.integer) return 'i';
  return given.text ? 's' : '\0';
}

const char* word_of_type(char type) {
  constexpr const char* kWords[] = {"of no known type",
                                    "a number",
                                    "an integer",
                                    "a text",
                                    "a tensor",
                                    "a graph",
                                    "a list of numbers",
                                    "a list of integers",
                                    "a list of texts",
                                    "a list of tensors",
                                    "a list of graphs",
                                    "a sparse tensor",
                                    "a list of sparse tensors",
                                    "a type",
                                    "a list of types"};
  return kWords[kAttributeTypes.find(type)];
}

void require_type_of(const NodeMessage& node, const AttributeMessage& given,
                     std::string_view types) {
  const char type = type_of(given);
  if (type != '\0' && types.find(type) == types.npos)
    fail(ErrorKind::User, "[onnx] {}: {} is {}, it must be {}", label_of(node), given.name,
         word_of_type(type), word_of_type(types[0]));
}

void require_values(const NodeMessage& node, const AttributeMessage& given) {
  const AttributeValues* const row = values_of(given.name, node.op);
  if (!row) return;
  const auto require_integer = [&](std::int64_t value) {
    if (row->words.empty() && (value < row->least || value > row->most))
      fail(ErrorKind::User, "[onnx] {}: {} is {}, it must be from {} to {}", label_of(node),
           given.name, value, row->least, row->most);
  };
  const auto require_word = [&](std::string_view text) {
    if (!row->words.empty() && !has_word(row->words, text))
      fail(ErrorKind::User, "[onnx] {}: {} is \"{}\", it must be one of {}", label_of(node),
           given.name, shown(text), fmt::join(words_in(row->words), ", "));
  };
  // A number or a text that is left out is 0 or empty, as protobuf leaves them out.
  if (type_of(given) == 'i') require_integer(given.integer.value_or(0));
  if (const float value = given.number.value_or(0);
      type_of(given) == 'f' && row->words.empty() && !(value >= static_cast<float>(row->least)))
    fail(ErrorKind::User, "[onnx] {}: {} is {}, it must be at least {}", label_of(node), given.name,
         value, row->least);
  if (type_of(given) == 's') require_word(given.text.value_or(""));
  for (const std::int64_t value : given.integers) require_integer(value);
  for (const std::string_view text : given.texts) require_word(text);
}

}  // namespace

void require_distinct_attributes(const NodeMessage& node) {
  std::unordered_set<std::string_view> given;
  for (const AttributeMessage& attribute : node.attributes)
    if (!given.insert(attribute.name).second)
      fail(ErrorKind::User, "[onnx] {} has the attribute \"{}\" twice", label_of(node),
           shown(attribute.name));
}

void require_attributes(const NodeMessage& node, const OperatorSchema& schema) {
  require_distinct_attributes(node);
  const std::vector<AttributeSchema> known = schema.all_attributes();
  for (const AttributeMessage& given : node.attributes) {
    const auto at = std::ranges::find(known, given.name, &AttributeSchema::name);
    if (at == known.end())
      fail(ErrorKind::User, "[onnx] {} has the attribute \"{}\", which {} does not have",
           label_of(node), shown(given.name), node.op);
    require_type_of(node, given, at->types);
    if (given.referenced.empty()) require_values(node, given);
  }
  for (const AttributeSchema& each : known)
    if (each.is_required && std::ranges::find(node.attributes, each.name,
                                              &AttributeMessage::name) == node.attributes.end())
      fail(ErrorKind::User, "[onnx] {} lacks the attribute \"{}\"", label_of(node), each.name);
}

}  // namespace plugrad::onnx
