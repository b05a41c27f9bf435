// Written by tools/update-onnx-schemas from onnx 1.23.2 and onnxruntime 1.32.0.
#include "onnx/file/schemas.h"

#include <algorithm>

namespace plugrad::onnx {
namespace {

// Operators that take the same in one row.
// clang-format off
constexpr OperatorSchema kSchemas[] = {
    {"", "Abs Ceil Exp Floor Log Neg Reciprocal Relu Sigmoid Sqrt Tanh",
        "consumed_inputs:I", 1, 1},
    {"", "Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cos Cosh Det Erf GlobalAveragePool "
        "GlobalMaxPool HardSwish Identity IsNaN Mish NonZero Not OptionalGetElement "
        "OptionalHasElement Round SequenceLength Sign Sin Sinh Size Softplus Softsign Tan",
        "", 1, 1},
    {"", "Add Div Mul Sub", "axis:i broadcast:i consumed_inputs:I", 2, 1},
    {"", "AffineGrid", "align_corners:i", 2, 1},
    {"", "And Equal Greater Less Or Pow Xor", "axis:i broadcast:i", 2, 1},
    {"", "ArgMax ArgMin", "axis:i keepdims:i select_last_index:i", 1, 1},
    {"", "Attention",
        "is_causal:i kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i "
        "right_window_size:i scale:f softcap:f softmax_precision:i", 7, 4},
    {"", "AveragePool",
        "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I! pads:I "
        "strides:I", 1, 1},
    {"", "BatchNormalization",
        "consumed_inputs:I epsilon:f is_test:i momentum:f spatial:i training_mode:i", 5, 5},
    {"", "Bernoulli", "dtype:i seed:f", 1, 1},
    {"", "BitCast", "to:i!", 1, 1},
    {"", "BitShift", "direction:s!", 2, 1},
    {"", "BitwiseAnd BitwiseOr BitwiseXor Expand GreaterOrEqual LessOrEqual MatMul SequenceAt "
        "SequenceErase StringConcat", "", 2, 1},
    {"", "BlackmanWindow HammingWindow HannWindow", "output_datatype:i periodic:i", 1, 1},
    {"", "Cast", "round_mode:s saturate:i to:is!", 1, 1},
    {"", "CastLike", "round_mode:s saturate:i", 2, 1},
    {"", "CausalConvWithState", "activation:s", 4, 2},
    {"", "Celu Swish ThresholdedRelu", "alpha:f", 1, 1},
    {"", "CenterCropPad Squeeze Unsqueeze", "axes:I", 2, 1},
    {"", "Clip", "consumed_inputs:I max:f min:f", 3, 1},
    {"", "Col2Im", "dilations:I pads:I strides:I", 3, 1},
    {"", "Compress Gather GatherElements", "axis:i", 2, 1},
    {"", "Concat", "axis:i", kMany, 1},
    {"", "ConcatFromSequence", "axis:i! new_axis:i", 1, 1},
    {"", "Constant",
        "sparse_value:p value:t value_float:f value_floats:F value_int:i value_ints:I "
        "value_string:s value_strings:S", 0, 1},
    {"", "ConstantOfShape", "value:t", 1, 1},
    {"", "Conv", "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I", 3, 1},
    {"", "ConvInteger", "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I", 4, 1},
    {"", "ConvTranspose",
        "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I "
        "strides:I", 3, 1},
    {"", "CumProd CumSum", "exclusive:i reverse:i", 2, 1},
    {"", "DFT", "axis:i inverse:i onesided:i", 3, 1},
    {"", "DeformConv",
        "dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I", 5, 1},
    {"", "DepthToSpace SpaceToDepth", "blocksize:i! mode:s", 1, 1},
    {"", "DequantizeLinear", "axis:i block_size:i output_dtype:i", 3, 1},
    {"", "Dropout", "consumed_inputs:I is_test:i ratio:f seed:i", 3, 2},
    {"", "DynamicQuantizeLinear", "", 1, 3},
    {"", "Einsum", "equation:s!", kMany, 1},
    {"", "Elu LeakyRelu", "alpha:f consumed_inputs:I", 1, 1},
    {"", "EyeLike", "dtype:i k:i", 1, 1},
    {"", "Flatten Hardmax LogSoftmax Softmax", "axis:i", 1, 1},
    {"", "GRU",
        "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
        "layout:i linear_before_reset:i output_sequence:i", 6, 2},
    {"", "GatherND", "batch_dims:i", 2, 1},
    {"", "Gelu", "approximate:s", 1, 1},
    {"", "Gemm", "alpha:f beta:f broadcast:i transA:i transB:i", 3, 1},
    {"", "GlobalLpPool", "p:fi", 1, 1},
    {"", "GridSample", "align_corners:i mode:s padding_mode:s", 2, 1},
    {"", "GroupNormalization", "epsilon:f num_groups:i! stash_type:i", 3, 1},
    {"", "HardSigmoid", "alpha:f beta:f consumed_inputs:I", 1, 1},
    {"", "If", "else_branch:g! then_branch:g!", 1, kMany},
    {"", "ImageDecoder", "pixel_format:s", 1, 1},
    {"", "InstanceNormalization", "consumed_inputs:I epsilon:f", 3, 1},
    {"", "IsInf", "detect_negative:i detect_positive:i", 1, 1},
    {"", "LRN", "alpha:f beta:f bias:f size:i!", 1, 1},
    {"", "LSTM",
        "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
        "input_forget:i layout:i output_sequence:i", 8, 3},
    {"", "LayerNormalization", "axis:i epsilon:f stash_type:i", 3, 3},
    {"", "LinearAttention",
        "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f update_rule:s", 6, 2},
    {"", "Loop SequenceMap", "body:g!", kMany, kMany},
    {"", "LpNormalization", "axis:i p:i", 1, 1},
    {"", "LpPool",
        "auto_pad:s ceil_mode:i dilations:I kernel_shape:I p:fi pads:I strides:I", 1, 1},
    {"", "MatMulInteger", "", 4, 1},
    {"", "Max Mean Min Sum", "consumed_inputs:I", kMany, 1},
    {"", "MaxPool",
        "auto_pad:s ceil_mode:i dilations:I kernel_shape:I! pads:I storage_order:i strides:I", 1, 2},
    {"", "MaxRoiPool", "pooled_shape:I! spatial_scale:f", 2, 1},
    {"", "MaxUnpool", "kernel_shape:I! pads:I strides:I", 3, 1},
    {"", "MeanVarianceNormalization", "axes:I", 1, 1},
    {"", "MelWeightMatrix", "output_datatype:i", 5, 1},
    {"", "Mod", "fmod:i", 2, 1},
    {"", "Multinomial", "dtype:i sample_size:i seed:f", 1, 1},
    {"", "NegativeLogLikelihoodLoss", "ignore_index:i reduction:s", 3, 1},
    {"", "NonMaxSuppression", "center_point_box:i", 5, 1},
    {"", "OneHot Scatter", "axis:i", 3, 1},
    {"", "Optional", "type:y", 1, 1},
    {"", "PRelu", "consumed_inputs:I", 2, 1},
    {"", "Pad", "mode:s paddings:I pads:I value:f", 4, 1},
    {"", "QLinearConv", "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I", 9, 1},
    {"", "QLinearMatMul", "", 8, 1},
    {"", "QuantizeLinear", "axis:i block_size:i output_dtype:i precision:i saturate:i", 3, 1},
    {"", "RMSNormalization", "axis:i epsilon:f stash_type:i", 2, 1},
    {"", "RNN",
        "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
        "layout:i output_sequence:i", 6, 2},
    {"", "RandomNormal", "dtype:i mean:f scale:f seed:f shape:I!", 0, 1},
    {"", "RandomNormalLike", "dtype:i mean:f scale:f seed:f", 1, 1},
    {"", "RandomUniform", "dtype:i high:f low:f seed:f shape:I!", 0, 1},
    {"", "RandomUniformLike", "dtype:i high:f low:f seed:f", 1, 1},
    {"", "Range", "stash_type:i", 3, 1},
    {"", "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum ReduceSumSquare",
        "axes:I keepdims:i noop_with_empty_axes:i", 2, 1},
    {"", "RegexFullMatch", "pattern:s", 1, 1},
    {"", "Reshape", "allowzero:i consumed_inputs:I shape:I", 2, 1},
    {"", "Resize",
        "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f "
        "exclude_outside:i extrapolation_value:f keep_aspect_ratio_policy:s mode:s "
        "nearest_mode:s", 4, 1},
    {"", "ReverseSequence", "batch_axis:i time_axis:i", 2, 1},
    {"", "RoiAlign",
        "coordinate_transformation_mode:s mode:s output_height:i output_width:i "
        "sampling_ratio:i spatial_scale:f", 3, 1},
    {"", "RotaryEmbedding", "interleaved:i num_heads:i rotary_embedding_dim:i", 4, 1},
    {"", "STFT", "onesided:i", 4, 1},
    {"", "Scan",
        "body:g! directions:I num_scan_inputs:i! scan_input_axes:I scan_input_directions:I "
        "scan_output_axes:I scan_output_directions:I", kMany, kMany},
    {"", "ScatterElements", "axis:i reduction:s", 3, 1},
    {"", "ScatterND", "reduction:s", 3, 1},
    {"", "Selu", "alpha:f consumed_inputs:I gamma:f", 1, 1},
    {"", "SequenceConstruct", "", kMany, 1},
    {"", "SequenceEmpty", "dtype:i", 0, 1},
    {"", "SequenceInsert Tile Where", "", 3, 1},
    {"", "Shape", "end:i start:i", 1, 1},
    {"", "Shrink", "bias:f lambd:f", 1, 1},
    {"", "SimplifiedLayerNormalization", "axis:i epsilon:f stash_type:i", 2, 2},
    {"", "Slice", "axes:I ends:I starts:I", 5, 1},
    {"", "SoftmaxCrossEntropyLoss", "ignore_index:i reduction:s", 3, 2},
    {"", "Split", "axis:i num_outputs:i split:I", 2, kMany},
    {"", "SplitToSequence", "axis:i keepdims:i", 2, 1},
    {"", "StringNormalizer",
        "case_change_action:s is_case_sensitive:i locale:s stopwords:S", 1, 1},
    {"", "StringSplit", "delimiter:s maxsplit:i", 1, 2},
    {"", "SwiGLU", "alpha:f", 2, 1},
    {"", "TensorScatter", "axis:i mode:s", 3, 1},
    {"", "TfIdfVectorizer",
        "max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s! ngram_counts:I! "
        "ngram_indexes:I! pool_int64s:I pool_strings:S weights:F", 1, 1},
    {"", "TopK", "axis:i k:i largest:i sorted:i", 2, 2},
    {"", "Transpose", "perm:I", 1, 1},
    {"", "Trilu", "upper:i", 2, 1},
    {"", "Unique", "axis:i sorted:i", 1, 4},
    {"", "Upsample", "height_scale:f mode:s scales:F width_scale:f", 2, 1},
    {"ai.onnx.ml", "ArrayFeatureExtractor", "", 2, 1},
    {"ai.onnx.ml", "Binarizer", "threshold:f", 1, 1},
    {"ai.onnx.ml", "CastMap", "cast_to:s map_form:s max_map:i", 1, 1},
    {"ai.onnx.ml", "CategoryMapper",
        "cats_int64s:I cats_strings:S default_int64:i default_string:s", 1, 1},
    {"ai.onnx.ml", "DictVectorizer", "int64_vocabulary:I string_vocabulary:S", 1, 1},
    {"ai.onnx.ml", "FeatureVectorizer", "inputdimensions:I", kMany, 1},
    {"ai.onnx.ml", "Imputer",
        "imputed_value_floats:F imputed_value_int64s:I replaced_value_float:f "
        "replaced_value_int64:i", 1, 1},
    {"ai.onnx.ml", "LabelEncoder",
        "classes_strings:S default_float:f default_int64:i default_string:s default_tensor:t "
        "keys_floats:F keys_int64s:I keys_strings:S keys_tensor:t values_floats:F "
        "values_int64s:I values_strings:S values_tensor:t", 1, 1},
    {"ai.onnx.ml", "LinearClassifier",
        "classlabels_ints:I classlabels_strings:S coefficients:F! intercepts:F multi_class:i "
        "post_transform:s", 1, 2},
    {"ai.onnx.ml", "LinearRegressor",
        "coefficients:F intercepts:F post_transform:s targets:i", 1, 1},
    {"ai.onnx.ml", "Normalizer", "norm:s", 1, 1},
    {"ai.onnx.ml", "OneHotEncoder", "cats_int64s:I cats_strings:S zeros:i", 1, 1},
    {"ai.onnx.ml", "SVMClassifier",
        "classlabels_ints:I classlabels_strings:S coefficients:F kernel_params:F "
        "kernel_type:s post_transform:s prob_a:F prob_b:F rho:F support_vectors:F "
        "vectors_per_class:I", 1, 2},
    {"ai.onnx.ml", "SVMRegressor",
        "coefficients:F kernel_params:F kernel_type:s n_supports:i one_class:i "
        "post_transform:s rho:F support_vectors:F", 1, 1},
    {"ai.onnx.ml", "Scaler", "offset:F scale:F", 1, 1},
    {"ai.onnx.ml", "TreeEnsemble",
        "aggregate_function:i leaf_targetids:I! leaf_weights:t! membership_values:t "
        "n_targets:i nodes_falseleafs:I! nodes_falsenodeids:I! nodes_featureids:I! "
        "nodes_hitrates:t nodes_missing_value_tracks_true:I nodes_modes:t! nodes_splits:t! "
        "nodes_trueleafs:I! nodes_truenodeids:I! post_transform:i tree_roots:I!", 1, 1},
    {"ai.onnx.ml", "TreeEnsembleClassifier",
        "base_values:F base_values_as_tensor:t class_ids:I class_nodeids:I class_treeids:I "
        "class_weights:F class_weights_as_tensor:t classlabels_int64s:I classlabels_strings:S "
        "nodes_falsenodeids:I nodes_featureids:I nodes_hitrates:F nodes_hitrates_as_tensor:t "
        "nodes_missing_value_tracks_true:I nodes_modes:S nodes_nodeids:I nodes_treeids:I "
        "nodes_truenodeids:I nodes_values:F nodes_values_as_tensor:t post_transform:s", 1, 2},
    {"ai.onnx.ml", "TreeEnsembleRegressor",
        "aggregate_function:s base_values:F base_values_as_tensor:t n_targets:i "
        "nodes_falsenodeids:I nodes_featureids:I nodes_hitrates:F nodes_hitrates_as_tensor:t "
        "nodes_missing_value_tracks_true:I nodes_modes:S nodes_nodeids:I nodes_treeids:I "
        "nodes_truenodeids:I nodes_values:F nodes_values_as_tensor:t post_transform:s "
        "target_ids:I target_nodeids:I target_treeids:I target_weights:F "
        "target_weights_as_tensor:t", 1, 1},
    {"ai.onnx.ml", "ZipMap", "classlabels_int64s:I classlabels_strings:S", 1, 1},
    {"ai.onnx.preview", "FlexAttention",
        "prob_mod:g scale:f score_mod:g softmax_precision:i", 3, 1},
    {"ai.onnx.preview.training", "Adagrad",
        "decay_factor:f epsilon:f norm_coefficient:f", kMany, kMany},
    {"ai.onnx.preview.training", "Adam",
        "alpha:f beta:f epsilon:f norm_coefficient:f norm_coefficient_post:f", kMany, kMany},
    {"ai.onnx.preview.training", "Gradient", "xs:S! y:s! zs:S", kMany, kMany},
    {"ai.onnx.preview.training", "Momentum",
        "alpha:f! beta:f! mode:s! norm_coefficient:f!", kMany, kMany},
    {"com.microsoft", "Attention",
        "do_rotary:i mask_filter_value:f num_heads:i! past_present_share_buffer:i "
        "qkv_hidden_sizes:I rotary_embedding_dim:i scale:f unidirectional:i", 7, 2},
    {"com.microsoft", "BiasGelu FastGelu GatherND", "", 2, 1},
    {"com.microsoft", "CausalConvWithState",
        "activation:s channels_last:i dilation:i input_channel_offset:i input_channels:i "
        "ndim:i state_channels_last:i state_length:i state_update_capacity:i state_window:i", 4, 3},
    {"com.microsoft", "DequantizeLinear QuantizeLinear", "axis:i", 3, 1},
    {"com.microsoft", "DynamicQuantizeLSTM",
        "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
        "input_forget:i", 12, 3},
    {"com.microsoft", "DynamicQuantizeMatMul QLinearSigmoid", "", 5, 1},
    {"com.microsoft", "EmbedLayerNormalization", "epsilon:f mask_index_type:i", 9, 3},
    {"com.microsoft", "FusedConv",
        "activation:s activation_params:F auto_pad:s dilations:I group:i kernel_shape:I "
        "pads:I strides:I", 4, 1},
    {"com.microsoft", "FusedGemm",
        "activation:s activation_alpha:f activation_beta:f activation_gamma:f alpha:f beta:f "
        "transA:i transB:i", 3, 1},
    {"com.microsoft", "FusedMatMul",
        "alpha:f transA:i transB:i transBatchA:i transBatchB:i", 2, 1},
    {"com.microsoft", "Gelu", "", 1, 1},
    {"com.microsoft", "GridSample", "align_corners:i mode:s padding_mode:s", 2, 1},
    {"com.microsoft", "GroupQueryAttention",
        "causal:i do_rotary:i k_norm_epsilon:f k_quant_type:s kv_cache_bit_width:i "
        "kv_num_heads:i! local_window_size:i num_heads:i! q_norm_epsilon:f qk_norm_epsilon:f "
        "qk_output:i rotary_interleaved:i scale:f sliding_window_cache:i smooth_softmax:i "
        "softcap:f v_quant_type:s", 17, 4},
    {"com.microsoft", "LinearAttention",
        "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f state_window:i update_rule:s", 6, 2},
    {"com.microsoft", "MatMulIntegerToFloat", "", 7, 1},
    {"com.microsoft", "MatMulNBits",
        "K:i! N:i! accuracy_level:i bits:i block_size:i! weight_prepacked:i", 6, 1},
    {"com.microsoft", "MultiHeadAttention",
        "mask_filter_value:f num_heads:i! scale:f unidirectional:i", 10, 4},
    {"com.microsoft", "NhwcMaxPool",
        "auto_pad:s ceil_mode:i dilations:I kernel_shape:I! pads:I strides:I", 1, 1},
    {"com.microsoft", "Pad", "mode:s", 3, 1},
    {"com.microsoft", "QGemm", "alpha:f transA:i transB:i", 9, 1},
    {"com.microsoft", "QLinearAdd QLinearMul", "", 8, 1},
    {"com.microsoft", "QLinearAveragePool",
        "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:I! pads:I "
        "strides:I", 5, 1},
    {"com.microsoft", "QLinearConcat", "axis:i!", kMany, 1},
    {"com.microsoft", "QLinearConv",
        "auto_pad:s channels_last:i dilations:I group:i kernel_shape:I pads:I strides:I", 9, 1},
    {"com.microsoft", "QLinearGlobalAveragePool", "channels_last:i", 5, 1},
    {"com.microsoft", "QLinearLeakyRelu", "alpha:f", 5, 1},
    {"com.microsoft", "QLinearSoftmax", "axis:i opset:i!", 5, 1},
    {"com.microsoft", "QuickGelu", "alpha:f", 1, 1},
    {"com.microsoft", "Range", "", 3, 1},
    {"com.microsoft", "RotaryEmbedding",
        "interleaved:i is_packed_batching:i num_heads:i rotary_embedding_dim:i scale:f", 4, 1},
    {"com.microsoft", "SkipLayerNormalization", "epsilon:f", 5, 4},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", "epsilon:f", 4, 4},
    {"com.microsoft", "SwiGLU",
        "activation_alpha:f activation_beta:f limit:f round_activation:i", 2, 1},
    {"com.microsoft", "Tokenizer",
        "mark:i! mincharnum:i! pad_value:s! separators:S tokenexp:s", 1, 1},
    {"com.microsoft", "Trilu", "upper:i", 2, 1},
    {"com.microsoft", "Unique", "", 1, 3},
    {"com.microsoft.nchwc", "AveragePool",
        "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I! pads:I "
        "strides:I", 1, 1},
    {"com.microsoft.nchwc", "Conv",
        "activation:s activation_params:F auto_pad:s dilations:I group:i kernel_shape:I "
        "pads:I strides:I", 4, 1},
    {"com.microsoft.nchwc", "GlobalAveragePool GlobalMaxPool", "", 1, 1},
    {"com.microsoft.nchwc", "MaxPool",
        "auto_pad:s ceil_mode:i dilations:I kernel_shape:I! pads:I storage_order:i strides:I", 1, 1},
    {"com.microsoft.nchwc", "ReorderInput", "channels_last:i", 1, 1},
    {"com.microsoft.nchwc", "ReorderOutput", "channels:i channels_last:i", 1, 1},
    {"com.microsoft.nchwc", "Upsample",
        "coordinate_transformation_mode:s mode:s scales:I", 1, 1},
};
// clang-format on

}  // namespace

std::vector<AttributeSchema> OperatorSchema::all_attributes() const {
  std::vector<AttributeSchema> all;
  for (std::string_view rest = attributes; !rest.empty();) {
    std::string_view each = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(each.size() + 1, rest.size()));
    const bool is_required = each.ends_with('!');
    if (is_required) each.remove_suffix(1);
    const size_t colon = each.find(':');
    all.push_back({each.substr(0, colon), each.substr(colon + 1), is_required});
  }
  return all;
}

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

const OperatorSchema* find_schema(std::string_view domain, std::string_view name) {
  const auto at = std::ranges::find_if(kSchemas, [&](const OperatorSchema& row) {
    return row.domain == domain && has_word(row.operators, name);
  });
  return at != std::end(kSchemas) ? &*at : nullptr;
}

}  // namespace plugrad::onnx
