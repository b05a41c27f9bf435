"""Turns the comments of the public headers into docstrings.

TRANSLATIONS replaces the words of C++ by Python's, SUMMARIES says what a function is where its
comment in the header leaves that to the name. Both are errors where they do not apply: a summary of
a function that is not there, a function without a word.
"""
import re

from headers import Class, Field, Function, Header

# Headers whose first comment holds for each of their functions.
SHARED_COMMENTS = ["loss.h", "linalg.h"]

DTYPES = {"i": "int", "u": "uint", "f": "float", "bf": "bfloat"}

# Code in the comments, word by word.
EXAMPLES = {
    "const Variable length(\"length\", 1, 4096); step(x, length.bind(17));":
        "`length = Variable(\"length\", 1, 4096); step(x, length.bind(17))`.",
    "x[{Slice(0, n)}], Tensor::zeros({n + 1, 3})": "x[:n], Tensor.zeros(n + 1, 3)",
    "for (const Tensor& x : sentences) step(length.fit(x, 0));  // (length, 256)":
        "`for x in sentences: step(length.fit(x, 0))`, of shape (length, 256).",
    "SearchScope search(4, 15);   // as BEAM=4 BEAM_SECONDS=15":
        "`with SearchScope(4, 15):` does as BEAM=4 BEAM_SECONDS=15.",
    "OptimisationScope lists(\"r_512_512_512: \" + kernel.optimisations());":
        "`with OptimisationScope(\"r_512_512_512: \" + kernel.optimisations):`",
    "`for (auto [x, y] : set.batches(512, {.shuffle = true}))`":
        "`for x, y in set.batches(512, shuffle=True)`",
    "`for (auto [x, y] : progress(set.batches(512)))`": "`for x, y in progress(set.batches(512))`",
    "einsum(\"bij,bjk->bik\", {a, b})": "einsum(\"bij,bjk->bik\", [a, b])",
    "sequential(x, {conv, &Tensor::relu, head})": "sequential(x, [conv, plugrad.relu, head])",
    "with {{\"h\", 4}}": "with h=4",
    "or \"\" for none": "or None",
    "rules.insert(rules.begin(), {\"place.weight\", {}})": "[(\"place.weight\", None), *rules]",
    "size()": "len()",
}

# (a pattern outside of quotes, what Python says), in this order
TRANSLATIONS = [
    # Kinds of errors are exceptions.
    (r"Errors: (User|Device|Unsupported|Internal)\b", r"Errors: \1Error"),
    (r"Errors of all of these: User, with the shapes\.", "Errors: UserError, with the shapes."),
    (r"(; |, of kind |errors as in \w+; )User\b", r"\1UserError"),
    (r"\bDevice from the plugin", "DeviceError from the plugin"),
    (r"UserError like operator\[\] and assign", "UserError as for x[…] and assign"),
    # Values
    (r"\bkFloatMax\b", "the largest number"),
    (r"for void, or a DType value that does not exist", "for a dtype that does not exist"),
    (r"and for void where the op has a value", "and for a dtype of no value where the op has one"),
    (r"\(not given: all; Axes::none\(\): none\)", "(None: all; (): none)"),
    (r"\{\} means every axis; an empty vector or Axes::none\(\) means no axis",
     "None means every axis, () none"),
    (r"\{\} leaves one out", "None leaves one out"),
    (r"(?:std::)?nullopt\b", "None"),
    (r"(\w+), an? undefined weight or bias is left out", r"\1, a weight or bias of None is left out"),
    (r"an undefined weight or bias is left out", "a weight or bias of None is left out"),
    (r"; undefined: 1", "; None: 1"),
    (r"zeros if undefined", "zeros if None"),
    (r"an undefined UOp means no match", "None means no match"),
    (r"; undefined when none does", "; None when none does"),
    (r"it may be left undefined", "None may be returned for it"),
    (r"undefined before a backward\(\)", "None before a backward()"),
    (r"when an input or output is undefined", "when an input or output is no tensor"),
    (r"is undefined(?= for|\.)", "has no defined behaviour"),
    (r"\(true: ", "(True: "),
    (r"without any true", "without any True"),
    (r"\b(true|false)(?= unless|:)", lambda match: match[1].capitalize()),
    (r"where the bool mask is true", "where the bool mask is True"),
    (r"where `mask` is true", "where `mask` is True"),
    # Names
    (r"\b(Reflect|Circular|Linear)(?= (pads|at most|converts|computes))",
     lambda match: f'"{match[1].lower()}"'),
    (r"; Linear converts", '; "linear" converts'),
    (r"\bMean: ", '"mean": '),
    (r"\bMean is over", '"mean" is over'),
    (r"divide the Sum by", 'divide the "sum" by'),
    (r"\bfor Linear: ", 'for "linear": '),
    (r"none when Strict\b", "none when strict"),
    (r"UserError when Strict and", "UserError when strict and"),
    (r"\boptions\.(\w+)", r"\1"),
    (r"\b(shape|ndim|grad|dtype|device)\(\)", r"\1"),
    (r"size\(0\)", "shape[0]"),
    (r"\bto_vector\b", "tolist"),
    (r"\boperator\[\]", "x[…]"),
    (r"\{([\w, …]+)\}", r"(\1)"),
    (r"the C\+\+ type T\b", "that type"),
    (r"; see functional\.h for shapes", ""),
    (r" \((?:see )?(?:jit|indexed|plugrad/scan)\.h\)", ""),
    (r"; see uop\.h", ""),
    (r"as a T; an integer T truncates a float", "as a number of Python"),
    (r"\bnn::shard\(", "nn.shard("),
    (r" \(distributed\.h\)", " (plugrad.distributed)"),
    (r"\bDevice if (MPI|a rank)", r"DeviceError if \1"),
    (r"\bnn::|\boptim::|\bir::|\bstd::", ""),
    (r"(\w)::(\w)", r"\1.\2"),
    # Dtypes have NumPy's names.
    (r"\b([Aa])n (?=[fF](16|32|64)\b)", r"\1 "),
    (r"\b(i|u|f|bf|I|U|F|BF)(8|16|32|64)\b",
     lambda match: DTYPES[match[1].lower()] + match[2]),
]

# Sections of tensor.h: their headings are comments of every function below them.
SECTIONS = {
    "Values": "", "Gradients": "", "Representation": "", "Products and windows": "",
    "Properties. None of these runs anything": "Computes nothing.",
    "Building. A number next to a node takes the node's dtype":
        "A number next to a node takes the node's dtype.",
    "Building a kernel (user_kernel.h), with loops and memory": "For kernels of your own.",
    "Looking": "", "Changing": "", "Sharding over a mesh of devices; see sharding.h": "",
}

SUMMARIES = {
    "Tensor.full": "A tensor of one value; its dtype is the value's unless given.",
    "Tensor.empty": "A tensor whose values are not promised.",
    "Tensor.zeros": "A tensor of zeros.",
    "Tensor.ones": "A tensor of ones.",
    "Tensor.full_like": "A tensor of one value, with the shape, dtype and device of this one.",
    "Tensor.zeros_like": "Zeros, with the shape, dtype and device of this tensor.",
    "Tensor.ones_like": "Ones, with the shape, dtype and device of this tensor.",
    "Tensor.empty_like": "As empty, with the shape, dtype and device of this tensor.",
    "Tensor.manual_seed": "Seeds the random numbers, which have 64 bits of state.",
    "Tensor.rand": "Uniform random numbers in",
    "Tensor.randn": "Normal random numbers:",
    "Tensor.uniform": "Uniform random numbers in [low, high).",
    "Tensor.normal": "Normal random numbers with this mean and standard deviation.",
    "Tensor.rand_like": "Uniform random numbers in [0, 1), with the shape and device of this tensor.",
    "Tensor.randn_like": "Normal random numbers, with the shape and device of this tensor.",
    "Tensor.shape": "The sizes of the axes, a tuple.",
    "Tensor.ndim": "The number of axes.",
    "Tensor.numel": "The number of elements.",
    "Tensor.bound_shape": "The shape:",
    "Tensor.dtype": "The kind of the elements.",
    "Tensor.device": "The name of the device, such as \"CPU\" or \"CUDA:1\".",
    "Tensor.assign": "Replaces the values, broadcast to the shape, and returns the tensor.",
    "Tensor.zero_grad": "Forgets the gradient: grad is None.",
    "Tensor.set_grad": "Replaces the gradient.",
    "Tensor.requires_grad": "Whether backward() computes a gradient of this tensor.",
    "Tensor.requires_grad_": "Asks for a gradient, or not:",
    "Tensor.grad": "The gradient:",
    "Tensor.detach": "The same values, through which no gradient flows.",
    "Tensor.logical_not": "True where an element is 0. Dtype: bool.",
    "Tensor.sqrt": "The square root:",
    "Tensor.exp": "e to the power of x,",
    "Tensor.log": "The natural logarithm:",
    "Tensor.log2": "The logarithm with", "Tensor.log10": "The logarithm with",
    "Tensor.sin": "The sine:", "Tensor.cos": "The cosine:", "Tensor.tan": "The tangent:",
    "Tensor.asin": "The arc sine:", "Tensor.acos": "The arc cosine:", "Tensor.atan": "The arc tangent:",
    "Tensor.sinh": "The hyperbolic sine:", "Tensor.cosh": "The hyperbolic cosine:",
    "Tensor.tanh": "The hyperbolic tangent:",
    "Tensor.asinh": "The inverse hyperbolic sine:", "Tensor.acosh": "The inverse hyperbolic cosine:",
    "Tensor.atanh": "The inverse hyperbolic tangent:",
    "Tensor.erf": "The error function:",
    "Tensor.abs": "The absolute value:", "Tensor.sign": "The sign:",
    "Tensor.trunc": "Rounds", "Tensor.floor": "Rounds", "Tensor.ceil": "Rounds",
    "Tensor.round": "Rounds",
    "Tensor.isnan": "Whether an element is NaN:", "Tensor.isinf": "Whether an element is",
    "Tensor.isposinf": "Whether an element is +inf:", "Tensor.isneginf": "Whether an element is -inf.",
    "Tensor.isfinite": "Whether an element is",
    "Tensor.leaky_relu": "x, but", "Tensor.elu": "x, but", "Tensor.celu": "x, but",
    "Tensor.prelu": "x, but",
    "Tensor.swish": "The same as silu.",
    "Tensor.gelu": "x Phi(x) with the normal distribution Phi, by its approximation with tanh unless "
                   "tanh_form is False. Hendrycks and Gimpel 2016.",
    "Tensor.hardsigmoid": "min(max(slope * x + offset, 0), 1).",
    "Tensor.hardtanh": "min(max(x, low), high).",
    "Tensor.clamp": "min(max(x, low), high).", "Tensor.clip": "The same as clamp.",
    "Tensor.pow": "x to the power of `exponent`.",
    "Tensor.div": "x / other, not rounded, or to an integer with rounding \"trunc\" or \"floor\".",
    "Tensor.maximum": "The larger of both:", "Tensor.minimum": "The smaller of both:",
    "Tensor.floor_div": "The quotient x // other:", "Tensor.trunc_div": "The quotient:",
    "Tensor.mod": "The remainder,", "Tensor.fmod": "The remainder:",
    "Tensor.where": "yes where a bool tensor is True, else no:",
    "Tensor.sum": "The sum.", "Tensor.prod": "The product. Dtype as for sum.",
    "Tensor.mean": "The mean:", "Tensor.max": "The largest element:",
    "Tensor.min": "The smallest element:", "Tensor.any": "Logical or,", "Tensor.all": "Logical and,",
    "Tensor.var": "The variance:", "Tensor.std": "The standard deviation, the root of var.",
    "Tensor.var_mean": "The variance and the mean.",
    "Tensor.std_mean": "The standard deviation and the mean.",
    "Tensor.argmin": "Index of the", "Tensor.log_softmax": "The logarithm of softmax.",
    "Tensor.cumsum": "Cumulative sums:", "Tensor.cumprod": "Cumulative products. Dtype as in sum.",
    "Tensor.logcumsumexp": "Logarithm of the cumulative sums of exp(x),",
    "Tensor.cummax": "Cumulative maxima.",
    "Tensor.cummin": "Cumulative minima: values and their indices (int32), the last of equal values.",
    "Tensor.argsort": "The indices (int32) of the sorted values.",
    "Tensor.reshape": "The elements, row-major, in another shape:",
    "Tensor.view": "The same as reshape.",
    "Tensor.permute": "The axes in another order:", "Tensor.expand": "Broadcasts to a shape:",
    "Tensor.pad": "Puts elements around the tensor: (before, after) for each axis, or numbers for the "
                  "last axes, the last axis first; negative ones crop. mode: \"constant\", "
                  "\"reflect\", \"replicate\" or \"circular\".",
    "Tensor.shrink_to": "Keeps the first elements of each axis:",
    "Tensor.rearrange": "Reshapes, permutes and merges axes.",
    "Tensor.split": "Parts of the axis, a list:",
    "Tensor.chunk": "`count` parts of the axis, a list:",
    "Tensor.diagonal": "A view of a diagonal of two axes.",
    "Tensor.tril": "The lower triangle:", "Tensor.triu": "The upper triangle:",
    "Tensor.index_select": "The elements with these indices along an axis:",
    "Tensor.gather": "Element j along the axis is the one with index `indices`[j]. The result",
    "Tensor.nonzero": "The indices of the elements that are not 0.",
    "Tensor.one_hot": "1 at the index that an element holds, else 0:",
    "Tensor.dot": "The same as matmul.",
    "Tensor.matmul": "Matrix product, as plugrad.matmul.",
    "Tensor.cast": "The elements in another dtype. Floats become integers by truncation.",
    "Tensor.clone": "A copy:", "Tensor.contiguous": "The tensor in row-major memory:",
    "Tensor.to": "The tensor on another device, or in another dtype.",
    "max_pool1d_with_places": "The largest elements of each window, and their indices (int32): "
                              "row-major over the pooled axes of the image without padding; of equal "
                              "elements, the index of the first.",
    "gradient": "Gradients, a list:",
    "ReduceOnPlateau.rate": "The present rate.",
    "qr": "Orthogonal and upper triangular factors, x = q r.",
    "svd": "Orthogonal factors and singular values, x = u diag(s) vt.",
    "cross_entropy": "-log softmax(logits)[target].",
    "binary_crossentropy_logits": "Binary cross-entropy.",
}


def in_python(text: str) -> str:
    """A comment of a header in Python's words; what stands in quotes is left as it is."""
    for code, words in EXAMPLES.items():
        text = text.replace(code, words)
    for pattern, words in TRANSLATIONS:
        parts = re.split(r'("[^"]*")', text)
        text = "".join(part if i % 2 else re.sub(pattern, words, part)
                       for i, part in enumerate(parts))
    return text


def translate(files: dict[str, Header]) -> None:
    """Rewrites all comments of the headers as docstrings."""
    for name, file in files.items():
        for function in file.functions:
            if name in SHARED_COMMENTS and not function.section:
                function.section = file.doc
        items: list[Function | Class | Field] = [
            *file.functions, *file.classes, *file.enums, *file.aliases,
            *(member for made in file.classes for member in [*made.functions, *made.fields])]
        for item in items:
            item.doc = in_python(item.doc)
            if isinstance(item, Function):
                item.section = _section(item.section)
    tensor = next(made for made in files["tensor.h"].classes if made.name == "Tensor")
    functions = [function for file in files.values() for function in file.functions]
    others = {f"{made.name}.": made.functions for file in files.values() for made in file.classes}
    _add_summaries({**others, "Tensor.": tensor.functions, "": functions})
    _share(tensor.functions, functions)
    _share(functions, tensor.functions)


def _section(text: str) -> str:
    text = in_python(text)
    text = SECTIONS.get(text, text)
    return text if not text or text[-1] in ".:" else text + "."


def _add_summaries(groups: dict[str, list[Function]]) -> None:
    """Puts the summaries before the comments; `groups` are the functions by the prefix of their
    names."""
    unused = set(SUMMARIES)
    for prefix, functions in groups.items():
        for function in functions:
            summary = SUMMARIES.get(prefix + function.name)
            if summary:
                unused.discard(prefix + function.name)
                function.doc = f"{summary} {function.doc}".strip()
    if unused:
        raise SyntaxError(f"wording.py has summaries of functions that are not there: {unused}")
    for functions in groups.values():
        for function in functions:
            function.doc = _sentence(function.doc)


def _sentence(text: str) -> str:
    """With a capital, unless the text begins with a formula or a name; and with a full stop."""
    if not text:
        return text
    first = text.split()[0]
    if first.isalpha() and first.islower() and len(first) > 1 and not re.match(
            r"\w+ (times|and bias|/|\*)", text):
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".:)" and not text.endswith(")") or text.endswith(".)") else text + "."


def _share(functions: list[Function], others: list[Function]) -> None:
    """Comments of functions without one: that of an overload, of the function for another number of
    axes, or of the function of the same name in `others`."""
    known = {function.name: function for function in reversed(others) if function.doc}
    known |= {function.name: function for function in reversed(functions) if function.doc}
    for function in functions:
        if not function.doc:
            found = next((known[name] for name in _like(function.name) if name in known), None)
            if found:
                function.doc, function.section = found.doc, function.section or found.section


def _like(name: str) -> list[str]:
    return [name, re.sub(r"\dd", "1d", name), re.sub(r"\dd", "", name)]
